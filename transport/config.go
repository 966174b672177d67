package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// The defaults of a [Config].
const (
	DefaultTimeout  = 10 * time.Second
	DefaultTick     = time.Second / 60
	DefaultMaxConns = 1024
)

const (
	minTimeout = 2 * time.Second
	minTick    = time.Millisecond
)

// Config sets up a [Listener] or a dialed [Conn]. The zero value of each field means its default.
type Config struct {
	// Network opens the packet connection; nil means UDP.
	Network Network
	// Insecure accepts that there is neither authentication nor encryption. Without it only loopback
	// addresses are allowed.
	Insecure bool
	// Timeout is how long a connection lives though nothing is heard from the peer, and how long Dial
	// tries; at least 2 s, since a silent peer sends a heartbeat each second, and by default 10 s.
	Timeout time.Duration
	// Tick is the time between two calls of [Handler.Tick], at least a millisecond, by default 1/60 s.
	// Heartbeats and retransmissions are as punctual as this.
	Tick time.Duration
	// MaxConns is how many connections a listener accepts, by default 1,024. Beyond it, a new one takes the
	// place of the oldest whose handshake is not over, if there is one. Dial ignores it.
	MaxConns int
	// Logger gets a record of each connection's beginning and end; nil means silence.
	Logger *slog.Logger
}

// withDefaults returns the configuration with its zero fields set, or an error that names a bad one.
func (c Config) withDefaults() (Config, error) {
	if c.Network == nil {
		c.Network = UDP()
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Tick == 0 {
		c.Tick = DefaultTick
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Timeout < minTimeout:
		return c, fmt.Errorf("transport: Config.Timeout is %v, must be at least %v", c.Timeout, minTimeout)
	case c.Tick < minTick:
		return c, fmt.Errorf("transport: Config.Tick is %v, must be at least %v", c.Tick, minTick)
	case c.MaxConns < 0:
		return c, errors.New("transport: Config.MaxConns is negative")
	}
	return c, nil
}

// allow returns an error unless the configuration permits to talk on that address.
func (c Config) allow(a netip.AddrPort) error {
	if c.Insecure || a.Addr().Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w (%v)", ErrInsecure, a)
}
