package client

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// DefaultBindTimeout is how long [Bind] waits for the server's answer.
const DefaultBindTimeout = 5 * time.Second

// Config sets up a [Conn]. The zero value of each field means its default.
type Config struct {
	// Insecure lets the client talk to other addresses than loopback, though
	// nothing is authenticated or encrypted yet.
	Insecure bool
	// Codec is how frames become bits; default rpcdelta.DefaultCodec.
	Codec rpcdelta.Codec
	// Redundancy is how many older frames ride along in each payload of an
	// unreliable RPC: rpcdelta.RedundancyAuto, the default, follows the loss.
	Redundancy int
	// RedundancyBytes is how long older frames may make a payload; default
	// rpcdelta.DefaultRedundancyBytes.
	RedundancyBytes int
	// Ring is how many frames of each RPC are kept as baselines, 2 to
	// rpcdelta.MaxRing; default rpcdelta.DefaultRing.
	Ring int
	// Timeout is how long the connection lives though nothing is heard from the
	// server; default transport.DefaultTimeout.
	Timeout time.Duration
	// BindTimeout is how long Bind waits for an answer; default
	// DefaultBindTimeout.
	BindTimeout time.Duration
	// Network opens the socket; nil means UDP. Tests and demos put
	// transport/simnet here.
	Network transport.Network
	// Logger gets a record of what happens to the connection and its bindings;
	// nil means silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Codec == 0 {
		c.Codec = rpcdelta.DefaultCodec
	}
	if c.Ring == 0 {
		c.Ring = rpcdelta.DefaultRing
	}
	if c.BindTimeout == 0 {
		c.BindTimeout = DefaultBindTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Ring < 2 || c.Ring > rpcdelta.MaxRing {
		return c, fmt.Errorf("client: Config.Ring is %d, want 2 to %d", c.Ring, rpcdelta.MaxRing)
	}
	if _, err := rpcdelta.ParseCodec(c.Codec.String()); err != nil {
		return c, fmt.Errorf("client: Config.Codec: %w", err)
	}
	if c.BindTimeout < 0 {
		return c, fmt.Errorf("client: Config.BindTimeout is %v", c.BindTimeout)
	}
	return c, nil
}

func (c Config) transport() transport.Config {
	return transport.Config{Network: c.Network, Insecure: c.Insecure, Timeout: c.Timeout, Logger: c.Logger}
}
