package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
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
	Link    simlink.Config
	Clients int
	Codec   rpcdelta.Codec
	Suite   transport.Suite
	For     time.Duration // 0: until the context is done
	Metrics string        // address of the dashboard and /metrics
	Tap     ds.Tap        // of the server; may be nil
	// Collectors are served at /metrics beside those of the server.
	Collectors []prometheus.Collector
	Debug      bool      // serve /debug/ there
	JSON       bool      // write lines of JSON, and nothing else
	Live       bool      // redraw the table in place
	KeyLog     io.Writer // gets the secrets of all sessions; nil: none are written
	// HTTPToken lets in to the dashboard; empty means none on loopback, elsewhere a random one.
	HTTPToken string
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

// prose is where goes what is for people alone.
func (o *Options) prose(w io.Writer) io.Writer {
	if o.JSON {
		return io.Discard
	}
	return w
}

// until gives the context of as long as to play.
func (o *Options) until(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.For > 0 {
		return context.WithTimeout(ctx, o.For)
	}
	return context.WithCancel(ctx)
}
