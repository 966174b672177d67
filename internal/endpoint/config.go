package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// The defaults of a [Config].
const (
	DefaultTick     = time.Second / 60
	DefaultMaxConns = 1024

	defaultTimeout              = 15 * time.Second
	defaultHandshakes           = 500
	defaultReliableQueue        = 256 << 10
	defaultTotalReliableQueue   = 64 << 20
	minReliableQueue            = 32 << 10
	defaultHandshakesPerNetwork = 20
)

// OnWake is the [Config.Tick] of a dialed connection whose handler ticks only when [Conn.Wake]
// requests it. An idle connection then uses no CPU time.
const OnWake time.Duration = -1

const (
	minTimeout = 2 * time.Second
	minTick    = time.Millisecond
	// The default of MaxPending is a quarter of MaxConns, within these bounds.
	minPending, maxPending = 16, 256
)

// Config configures a [Listener] or a dialed [Conn]. The zero value of each field selects its
// default.
type Config struct {
	// Network opens the packet connections; nil selects UDP.
	Network transport.Network
	// Key is the key of a listener: it authenticates the listener and opens tokens. Without one, a
	// listener uses token.Development, on loopback addresses only. Dial ignores it.
	Key token.Key
	// OtherKeys are further keys of a listener, with the same effect. During a rotation it has the
	// old and the new key; see [Listener.SetKeys]. Dial ignores it.
	OtherKeys []token.Key
	// Token is the connect token of a client, good for one connection. Without one, Dial issues a
	// token with token.Development, for loopback addresses only. A listener ignores it.
	Token token.Token
	// Addrs are the addresses by which clients reach a listener: a token must name one of them. The
	// default is the address that it listens on. If that is an unspecified address, such as
	// 0.0.0.0, Addrs is required. If it is empty but not nil, the listener accepts no token before
	// [Listener.SetAddrs]. With the development key, tokens for any loopback address are accepted.
	// Dial ignores it.
	Addrs []netip.AddrPort
	// Route, if set, is the route id of a listener behind a proxy: a token must have it. It has at
	// most 16 bytes. Servers with the same public address need different ones: otherwise a client
	// could use its token once at each of them. Dial ignores it.
	Route []byte
	// ServerID, if not 0, is in the highest 16 bits of connection ids, so that a proxy finds the
	// listener without keys when a client's address has changed. Dial ignores it.
	ServerID uint16
	// ReliableQueue is the maximum number of bytes of reliable messages of a connection that wait
	// to be sent or acknowledged, by default 256 KiB, at least 32 KiB. TotalReliableQueue is the
	// maximum of all connections of a listener together, by default 64 MiB; Dial ignores it. Beyond
	// them, [Conn.SendReliable] returns session.ErrBacklog.
	ReliableQueue, TotalReliableQueue int
	// Suites are the permitted suites; by default AES128GCM and ChaCha20Poly1305. A listener
	// selects its first suite that the client offers.
	Suites []transport.Suite
	// Insecure permits the suite None, which protects nothing, and the published development key on
	// any address. It is for measurements.
	Insecure bool
	// Timeout is the time after which a connection ends if nothing is received from the peer, and
	// after which Dial gives up: at least 2 s, by default 15 s.
	Timeout time.Duration
	// Hellos is the maximum number of hellos that Dial sends to a listener that does not answer; 0,
	// the default, means no limit. A listener ignores it.
	Hellos int
	// Tick is the time between two calls of [Handler.Tick]: at least 1 ms, by default 1/60 s. It is
	// also the resolution of a listener's heartbeats and retransmissions. Dial accepts [OnWake]
	// too.
	Tick time.Duration
	// MaxConns is the maximum number of connections of a listener, by default 1,024. Dial ignores
	// it.
	MaxConns int
	// MaxPending is the maximum number of connections of a listener whose handshake is incomplete.
	// A handshake may take at most 5 s. The default is a quarter of MaxConns, but at least 16 and
	// at most 256. Half of MaxPending is reserved for networks without an incomplete handshake.
	// Dial ignores it.
	MaxPending int
	// Handshakes is the maximum number of handshakes per second of a listener, by default 500.
	// HandshakesPerNetwork is the maximum of one network (/24 of IPv4, /64 of IPv6), by default 20;
	// it does not apply to loopback addresses. Half of Handshakes is reserved for networks without
	// a handshake in the last 10 s. Bursts may be twice as large. Dial ignores them.
	Handshakes, HandshakesPerNetwork int
	// Shards is the number of packet connections of a listener on its address, each with its own
	// goroutine and handler; by default 1, at most [MaxShards]. The network distributes clients
	// over them; if it cannot (see [transport.Network]), there is one shard. Dial ignores it.
	Shards int
	// Admit, if set, is asked about each client whose token is valid and was not used at this
	// listener, for example whether it was used at another one. It runs on a goroutine of its own,
	// at most MaxPending at a time, while the client waits; its context ends after 5 s, or when the
	// listener stops. An error that wraps token.ErrUsed refuses the client. After any other error
	// the client gets transport.ErrStore, but it repeats its request until it gives up: Admit is
	// asked again then, with an equal Join. Dial ignores it.
	Admit func(ctx context.Context, j Join) error
	// KeyLog, if set, receives one line with the secrets of each session, in one Write, for
	// debugging: uplink decrypt decrypts recorded datagrams with it (package keylog). A line is
	// sufficient to decrypt and forge all traffic of its session. Several configurations may share
	// a writer that is not safe for concurrent use. An error is logged and has no other effect.
	KeyLog io.Writer
	// Logger receives records of the start and end of connections, and of periods in which the
	// network rejects datagrams; nil disables logging.
	Logger *slog.Logger

	// wall returns the time by which tokens expire; nil selects time.Now. It may step at any time.
	// Everything else uses the monotonic clock.
	wall func() time.Time
}

// withDefaults returns the configuration with its zero fields set, or an error that names an
// invalid field.
func (c Config) withDefaults() (Config, error) {
	c.Network = cmp.Or(c.Network, transport.UDP())
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.wall == nil {
		c.wall = time.Now
	}
	if len(c.Suites) == 0 {
		c.Suites = []transport.Suite{transport.AES128GCM, transport.ChaCha20Poly1305}
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Tick = cmp.Or(c.Tick, DefaultTick)
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.MaxPending = cmp.Or(c.MaxPending, min(max(c.MaxConns/4, minPending), maxPending))
	c.Handshakes = cmp.Or(c.Handshakes, defaultHandshakes)
	c.HandshakesPerNetwork = cmp.Or(c.HandshakesPerNetwork, defaultHandshakesPerNetwork)
	c.Shards = cmp.Or(c.Shards, 1)
	c.ReliableQueue = cmp.Or(c.ReliableQueue, defaultReliableQueue)
	c.TotalReliableQueue = cmp.Or(c.TotalReliableQueue, max(defaultTotalReliableQueue, c.ReliableQueue))
	switch {
	case c.ReliableQueue < minReliableQueue:
		return c, fmt.Errorf("setting ReliableQueue is %d, must be at least %d", c.ReliableQueue, minReliableQueue)
	case c.TotalReliableQueue < c.ReliableQueue:
		return c, fmt.Errorf("setting TotalReliableQueue is %d, less than the %d of ReliableQueue", c.TotalReliableQueue, c.ReliableQueue)
	case c.Timeout < minTimeout:
		return c, fmt.Errorf("setting Timeout is %v, must be at least %v", c.Timeout, minTimeout)
	case c.Tick < minTick && c.Tick != OnWake:
		return c, fmt.Errorf("setting Tick is %v, must be at least %v", c.Tick, minTick)
	case c.Hellos < 0:
		return c, fmt.Errorf("setting Hellos is %d, must not be negative", c.Hellos)
	case c.MaxConns < 0:
		return c, fmt.Errorf("setting MaxConns is %d, must not be negative", c.MaxConns)
	case c.MaxPending < 0:
		return c, fmt.Errorf("setting MaxPending is %d, must not be negative", c.MaxPending)
	case c.Handshakes < 0:
		return c, fmt.Errorf("setting Handshakes is %d, must not be negative", c.Handshakes)
	case c.HandshakesPerNetwork < 0:
		return c, fmt.Errorf("setting HandshakesPerNetwork is %d, must not be negative", c.HandshakesPerNetwork)
	case c.Shards < 0 || c.Shards > MaxShards():
		return c, fmt.Errorf("setting Shards is %d, must be 1 to %d on this machine", c.Shards, MaxShards())
	}
	if len(c.Route) > token.MaxRoute {
		return c, fmt.Errorf("setting Route has %d bytes, at most %d", len(c.Route), token.MaxRoute)
	}
	for _, s := range c.Suites {
		switch {
		case !s.Valid():
			return c, fmt.Errorf("setting Suites has %v, which is unknown", s)
		case s == transport.None && !c.Insecure:
			return c, errors.New("setting Suites has None, which protects nothing: it requires Insecure")
		}
	}
	return c, nil
}

// Join is a client's request for a connection, for [Config.Admit].
type Join struct {
	// Client is the client id of the token.
	Client uint64
	// Token is the id of the token; Issued and Expires are its times, in UTC.
	Token           token.ID
	Issued, Expires time.Time
	// Handover reports whether another server issued the token to hand the client over.
	Handover bool
	// Attempt identifies the client's attempt to connect: a repeated request has the same, another
	// use of the token has not.
	Attempt [32]byte
}

// dial sends the first hello to an address.
func (c Config) dial(remote netip.AddrPort, h Handler, claim func() bool) (*dialer, error) {
	request, err := c.request(remote)
	if err != nil {
		return nil, err
	}
	pc, err := c.Network.ListenPacket(localFor(remote))
	if err != nil {
		return nil, err
	}
	return newDialer(pc, request, c, h, claim), nil
}

func (c Config) request(remote netip.AddrPort) (session.Request, error) {
	t, err := c.token(remote)
	if err != nil {
		return session.Request{}, err
	}
	r := session.Request{Remote: session.Path{Addr: remote}, ServerKey: t.ServerKey(), KeyID: t.KeyID(), Route: t.Route(), Token: t.Sealed(), Nonce: randomID()}
	for _, s := range c.Suites {
		r.Suites |= 1 << s
	}
	return r, nil
}

func (c Config) listen(addr string) (pcs []transport.PacketConn, err error) {
	if n, ok := c.Network.(shardNetwork); ok {
		pcs, err = n.ListenShards(addr, c.Shards)
	} else {
		pcs = make([]transport.PacketConn, 1)
		pcs[0], err = c.Network.ListenPacket(addr)
	}
	if err != nil {
		return nil, err
	}
	if len(pcs) < c.Shards {
		c.Logger.Warn("the network does not spread datagrams over shards", "shards", len(pcs), "wanted", c.Shards)
	}
	return pcs, nil
}
