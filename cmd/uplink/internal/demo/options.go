package demo

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/link"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	maxClients = 1000
	// patience is how long clients may take to connect.
	patience = 20 * time.Second
)

// Options says what to play. Errors name the command's flags.
type Options struct {
	Link    link.Config
	Clients int
	Codec   rpcdelta.Codec
	Suite   transport.Suite
	For     time.Duration // 0: until the context is done
	Metrics string        // address of the dashboard and /metrics
	// HTTPToken lets in to the dashboard; empty means none on loopback, elsewhere a random one.
	HTTPToken string
	Live      bool // redraw the table in place
}

// Validate says which flag is wrong, and how.
func (o *Options) Validate() error {
	switch {
	case o.Clients < 1 || o.Clients > maxClients:
		return fmt.Errorf("--clients %d: want 1 to %d", o.Clients, maxClients)
	case o.HTTPToken != "" && len(o.HTTPToken) < dashboard.MinToken:
		return fmt.Errorf("--http-token: want %d characters or more", dashboard.MinToken)
	case o.For < 0:
		return fmt.Errorf("--for %v: want 0s, which is until Ctrl-C, or more", o.For)
	}
	return o.Link.Validate()
}
