package ds

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// The defaults of a [Config].
const (
	// DefaultAckHz comes from the measured curve in docs/results.md.
	DefaultAckHz = 10
	// defaultQueueBytes has room for half a second of a thousand players.
	defaultQueueBytes = 16 << 20
	defaultRateSlack  = 2
	defaultMaxRate    = 250
)

// MaxRateSlack is the highest Config.RateSlack, which is as good as no limit.
const MaxRateSlack = 1e6

// Config sets up a [Server]. The zero value of each field means its default.
type Config struct {
	// Key proves to clients who the server is, and opens their connect tokens; see
	// package token. Without one, only loopback addresses are allowed.
	Key token.Key
	// Addrs are the addresses that clients dial, of which their tokens name one;
	// default the one listened on.
	Addrs []netip.AddrPort
	// Suites are how datagrams may be sealed, the best first; default
	// transport.AES128GCM.
	Suites []transport.Suite
	// Insecure allows the key that everybody has on other addresses than loopback,
	// and the suite None. It is for measurements.
	Insecure bool
	// Ring is how many frames of each RPC and player are kept as baselines, 2 to
	// rpcdelta.MaxRing; default rpcdelta.DefaultRing. It should hold more than the
	// frames of a round trip and an ack interval.
	Ring int
	// AckHz is how often a second a player's frames are acked, all of its RPCs in
	// one datagram; 1 to 1000, default DefaultAckHz.
	AckHz float64
	// DeliverLate has frames that were overtaken on the way delivered, marked,
	// instead of dropped.
	DeliverLate bool
	// Priors are what streams of the adaptive codec may start from beside the
	// built-in one, those of older clients too. A client that names another gets the
	// built-in one; RPCStats counts that.
	Priors []*rpcdelta.Prior
	// Poll has handlers run in [Server.Poll] instead of in Serve.
	Poll bool
	// JitterBuffer, if not nil, has frames of unreliable RPCs wait for their time, so
	// that each Poll releases one a player. It needs Poll. [Server.SetJitterBuffer] says
	// otherwise for one RPC.
	JitterBuffer *JitterBuffer
	// QueueBytes is how much may wait for Poll, in bytes of values and what lies
	// around them; default 16 MiB. Half of it is divided evenly among the
	// players, the other half is for those who need more. What does not fit is dropped
	// and counted as queue_full; if it is a frame of a reliable RPC, of which none may be
	// missing, the player is disconnected.
	QueueBytes int
	// RateSlack is how many times the rate that it declared a player may call an RPC,
	// 1 to MaxRateSlack; default 2. Up to two seconds of that may come
	// at once. Frames above it are dropped and counted as limited, though they are
	// baselines like others; above that of a reliable RPC the player is disconnected.
	// Payloads are limited in the same way before they are decoded.
	RateSlack float64
	// MaxRate is the highest rate that an RPC can be bound with, in calls a second, up
	// to 1000; default 250. The rate of a schema that [HandleSchema] got can be
	// bound too.
	MaxRate float64
	// MaxBindings is how many RPCs a player can bind, those bound several times
	// counted as often; default twice as many as there are, and at least 8.
	MaxBindings int
	// MaxRejected is how many frames that [Validate] refuses end a player's session; 0,
	// the default, is no limit.
	MaxRejected int
	// MaxPlayers is how many players are let in; default
	// transport.DefaultMaxConns.
	MaxPlayers int
	// Shards is how many sockets and goroutines receive, decode and run handlers,
	// default 1, at most transport.MaxShards. The system spreads players over them, on
	// Linux; elsewhere there is one. With several, handlers of different players run at
	// the same time; see the package's description.
	Shards int
	// Timeout is how long a player stays though nothing is heard from it; default
	// transport.DefaultTimeout.
	Timeout time.Duration
	// Joined and Left, if set, are called when a player has connected, and when it
	// is gone and why. They run where handlers run. With Poll, while twice MaxPlayers of
	// these calls wait, nobody is let in.
	Joined func(*Player)
	Left   func(*Player, error)
	// PanicHandler, if set, is called when a callback of the game has panicked: a handler, a
	// validator, Joined, Left, OnMessage, or a method of Tap. It gets the player whom the callback
	// was for, the value of the panic, and the goroutine's stack. The player is nil for Tap.Counted
	// and Tap.Resets. The value is nil if the callback ended its goroutine with runtime.Goexit, as
	// FailNow of package testing does.
	//
	// Before the call the panic is counted (Stats.Panics) and logged with its stack. After it the
	// player's session is closed: Left gets an error that wraps [ErrPanic], the client gets
	// client.ErrKicked with the reason "internal server error", unless PanicHandler calls
	// [Player.Kick] with another one, and frames of the player that wait are counted as dropped, as
	// [Kicked]. The server and all other players continue.
	//
	// A game that must not continue after a panic panics in PanicHandler: that ends the process,
	// unless the game recovers it around Poll. It runs where the callback ran, or for a Tap on the
	// goroutine that receives. A mutex that the callback held is still locked if no deferred
	// function has unlocked it.
	PanicHandler func(p *Player, value any, stack []byte)
	// OnMessage, if set, gets the messages that players send with
	// client.Conn.SendReliable, in each player's order. It runs where handlers run; the
	// message is valid while it does. A player who sends far more than a client does
	// by itself is disconnected.
	OnMessage func(p *Player, message []byte)
	// KeyLog, if set, gets a line with the secrets of each session: it gives away all that is
	// sealed. It is for debugging; see transport.Config.
	KeyLog io.Writer
	// Tap, if set, sees what comes, goes and is made of it.
	Tap Tap
	// Network opens the socket; nil means UDP. Tests and demos put
	// transport/simnet here.
	Network transport.Network
	// Logger gets a record of what happens to connections and bindings, never of
	// single frames; nil means silence, but for panics of the game's callbacks: without a
	// PanicHandler they are then logged to slog.Default.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	c.Ring = cmp.Or(c.Ring, rpcdelta.DefaultRing)
	c.AckHz = cmp.Or(c.AckHz, DefaultAckHz)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	c.RateSlack = cmp.Or(c.RateSlack, defaultRateSlack)
	c.MaxRate = cmp.Or(c.MaxRate, defaultMaxRate)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	switch {
	case c.Ring < 2 || c.Ring > rpcdelta.MaxRing:
		return c, fmt.Errorf("ds: Config.Ring is %d, want 2 to %d", c.Ring, rpcdelta.MaxRing)
	case !(c.AckHz >= 1 && c.AckHz <= 1000):
		return c, fmt.Errorf("ds: Config.AckHz is %v, want 1 to 1000", c.AckHz)
	case c.QueueBytes < 0:
		return c, errors.New("ds: Config.QueueBytes is negative")
	case !(c.RateSlack >= 1 && c.RateSlack <= MaxRateSlack):
		return c, fmt.Errorf("ds: Config.RateSlack is %v, want 1 to %v", c.RateSlack, float64(MaxRateSlack))
	case !(c.MaxRate > 0 && c.MaxRate <= 1000):
		return c, fmt.Errorf("ds: Config.MaxRate is %v calls a second, want more than 0 and at most 1000", c.MaxRate)
	case c.MaxBindings < 0 || c.MaxBindings > rpcdelta.MaxRPC+1:
		return c, fmt.Errorf("ds: Config.MaxBindings is %d, want at most %d", c.MaxBindings, rpcdelta.MaxRPC+1)
	case c.MaxRejected < 0:
		return c, errors.New("ds: Config.MaxRejected is negative")
	case c.MaxPlayers < 0:
		return c, errors.New("ds: Config.MaxPlayers is negative")
	}
	if err := c.checkJitterBuffer(c.JitterBuffer); err != nil {
		return c, fmt.Errorf("ds: Config.JitterBuffer: %w", err)
	}
	return c, checkPriors(c.Priors)
}

// ackInterval is the time between two acks of a player.
func (c Config) ackInterval() time.Duration {
	return time.Duration(float64(time.Second) / c.AckHz)
}

// tick is the ack interval, or the part of it that is next to the transport's
// usual tick: heartbeats and the reliable channel must not wait for slow acks.
func (c Config) tick() time.Duration {
	interval := c.ackInterval()
	parts := (interval + transport.DefaultTick/2) / transport.DefaultTick
	return interval / max(parts, 1)
}
