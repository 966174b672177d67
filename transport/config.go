package transport

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/token"
)

// The defaults of a [Config].
const (
	DefaultTick     = time.Second / 60
	DefaultMaxConns = 1024

	defaultTimeout              = 15 * time.Second
	defaultHandshakes           = 500
	defaultHandshakesPerNetwork = 20
)

// OnWake is the [Config.Tick] of a dialed connection whose handler is ticked when [Conn.Wake] asks for it, and not
// otherwise: while there is nothing to do nothing runs.
const OnWake time.Duration = -1

const (
	minTimeout = 2 * time.Second
	minTick    = time.Millisecond
	// A quarter of MaxConns may be pending, within these bounds.
	leastPending, mostPending = 16, 256
)

// Config sets up a [Listener] or a dialed [Conn]. The zero value of each field means its default.
type Config struct {
	// Network opens the packet connection; nil means UDP.
	Network Network
	// Key is a listener's: it proves to clients who the listener is, and opens their tokens. Without one,
	// a listener takes token.Development, on loopback addresses only. Dial ignores it.
	Key token.Key
	// Token is a client's, good for one connection. Without one, Dial makes its own with
	// token.Development, for loopback addresses only. A listener ignores it.
	Token token.Token
	// Addrs are the addresses at which clients reach a listener: a token must name one of them. By default
	// that is the address listened on; if that is every address of the machine, they must be given. With
	// the development key, tokens for any loopback address do. Dial ignores it.
	Addrs []netip.AddrPort
	// Suites are how datagrams may be sealed; by default AES128GCM alone. A listener chooses the first of
	// its own that the client has too.
	Suites []Suite
	// Insecure allows the suite None, which protects nothing, and the development key, which everybody
	// has, on any address. It is for measurements.
	Insecure bool
	// Timeout is how long a connection lives though nothing is heard from the peer, and how long Dial
	// tries; at least 2 s, since a silent peer sends a heartbeat each second, and by default 15 s.
	Timeout time.Duration
	// Tick is the time between two calls of [Handler.Tick], at least a millisecond, by default
	// 1/60 s. A listener's heartbeats and retransmissions are as punctual as this. Dial takes
	// [OnWake] too.
	Tick time.Duration
	// MaxConns is how many connections a listener accepts, by default 1,024. Dial ignores it.
	MaxConns int
	// MaxPending is how many of these a listener lets wait for the end of their handshake, which takes 5 s
	// at most; by default a quarter of MaxConns, within 16 and 256. Half of them are for networks that have
	// none. Dial ignores it.
	MaxPending int
	// Handshakes is how many handshakes a second a listener does at most, by default 500, and
	// HandshakesPerNetwork how many of them with one network (/24 of IPv4, /64 of IPv6), by default 20; this
	// machine's own addresses count for the former only. Half of the former are for networks that had none in
	// the last 10 s. Bursts are twice as much. Dial ignores them.
	Handshakes, HandshakesPerNetwork int
	// Shards is how many packet connections a listener has on its address, each with a goroutine and a handler
	// of its own, by default 1, at most [MaxShards]. The network spreads the senders over them: [UDP] does so
	// on Linux; elsewhere, and on a network that is no [Network] with the method ListenShards, there is one shard whatever this says.
	// Dial ignores it.
	Shards int
	// KeyLog, if set, gets a line with the secrets of each session, in one Write, for debugging: uplink decrypt opens
	// recorded datagrams with it (package keylog). Whoever reads it can read and forge whatever these sessions
	// carry. Several configurations may share one, which need not be safe for concurrent use. An error is logged,
	// and changes nothing.
	KeyLog io.Writer
	// Logger gets a record of each connection's beginning and end, and of times in which the network does not
	// accept datagrams; nil means silence.
	Logger *slog.Logger

	// wall is the clock of the times in tokens; nil means time.Now. It may step at any time. Everything else
	// uses the monotonic clock.
	wall func() time.Time
}

// withDefaults returns the configuration with its zero fields set, or an error that names a bad one.
func (c Config) withDefaults() (Config, error) {
	if c.Network == nil {
		c.Network = UDP()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.wall == nil {
		c.wall = time.Now
	}
	if len(c.Suites) == 0 {
		c.Suites = []Suite{AES128GCM}
	}
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Tick, DefaultTick)
	setDefault(&c.MaxConns, DefaultMaxConns)
	setDefault(&c.MaxPending, min(max(c.MaxConns/4, leastPending), mostPending))
	setDefault(&c.Handshakes, defaultHandshakes)
	setDefault(&c.HandshakesPerNetwork, defaultHandshakesPerNetwork)
	setDefault(&c.Shards, 1)
	switch {
	case c.Timeout < minTimeout:
		return c, fmt.Errorf("transport: Config.Timeout is %v, must be at least %v", c.Timeout, minTimeout)
	case c.Tick < minTick && c.Tick != OnWake:
		return c, fmt.Errorf("transport: Config.Tick is %v, must be at least %v", c.Tick, minTick)
	case c.MaxConns < 0:
		return c, errors.New("transport: Config.MaxConns is negative")
	case c.MaxPending < 0:
		return c, errors.New("transport: Config.MaxPending is negative")
	case c.Handshakes < 0 || c.HandshakesPerNetwork < 0:
		return c, errors.New("transport: Config.Handshakes or Config.HandshakesPerNetwork is negative")
	}
	return c, errors.Join(c.checkSuites(), c.checkShards())
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
