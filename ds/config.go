package ds

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Defaults of a [Config].
const (
	// DefaultAckHz follows from the ack rate curve in lab/results.md.
	DefaultAckHz = 10
	// defaultQueueBytes has room for half a second of a thousand players.
	defaultQueueBytes = 16 << 20
	defaultRateSlack  = 2
	defaultMaxRate    = 250
)

// maxRateSlack is the maximum of Config.Limits.RateSlack, which is practically no limit.
const maxRateSlack = 1e6

// Config configures a [Server]. The zero value of each field means its default.
type Config struct {
	// Key proves the server's identity to clients, and opens their connect tokens; see package
	// token. Without a key, only loopback addresses are allowed.
	Key token.Key
	// OtherKeys are further keys, with the same effect. During a rotation the server has the old
	// and the new key; see [Server.SetKeys].
	OtherKeys []token.Key
	// Addrs are the addresses that clients dial; their tokens name one of them. The default is the
	// address of Listen. If Addrs is empty but not nil, nobody can join before [Server.SetAddrs].
	Addrs []netip.AddrPort
	// Fleet, if set, makes the server a member of a fleet: the servers of a fleet share which
	// tokens were used and where each client plays, and announce themselves in a directory. See
	// package fleet.
	Fleet *fleet.Config
	// MaxPlayers is the maximum number of players; default 1,024.
	MaxPlayers int
	// Poll runs handlers in [Server.Poll] instead of in Serve.
	Poll bool
	// TickHz is the number of calls of Poll per second, 1 to 1000, for RPCs with a [JitterBuffer]:
	// each Poll is a tick. A game that missed ticks calls Poll once for each. It has no default.
	TickHz float64
	// Joined, if set, is called when a player joins this server. Left, if set, is called when the
	// player has disconnected, with an error that wraps one of transport.ErrQuit, ErrKicked,
	// ErrShutdown, ErrTimeout, ErrReplaced, ErrHandedOver, ErrProtocol, ErrLimit and ErrPanic. Each
	// is called once for a player, where handlers run. With Poll, connections are refused while
	// twice MaxPlayers of these calls wait.
	Joined func(*Player)
	Left   func(*Player, error)
	// OnMessage, if set, is called for each message that players send with
	// client.Conn.SendReliable, in each player's order. It runs where handlers run; the message is
	// valid until it returns. A player who sends far more than the rate limit of
	// client.Conn.SendReliable permits is disconnected.
	OnMessage func(p *Player, message []byte)
	// Network opens the socket; nil means UDP. Tests and demos set it to a transport/simnet
	// network.
	Network transport.Network
	// Logger receives records about connections and bindings, but none per frame. If it is nil
	// nothing is logged, except that without a PanicHandler panics are logged to slog.Default.
	Logger *slog.Logger

	// The other fields are in groups: Transport configures sockets and sessions, Limits the
	// resources of players, and Tuning the decoding and acknowledging of calls. Hooks contains
	// callbacks for less common events.
	Transport Transport
	Limits    Limits
	Tuning    Tuning
	Hooks     Hooks
}

// Transport configures the sockets and sessions of a [Server]: Config.Transport. The zero value of
// each field means its default.
type Transport struct {
	// Route and ServerID are for servers behind a proxy that routes by them; see docs/fleet.md and
	// package transport/relay.
	Route    []byte
	ServerID uint16
	// Suites are the permitted cipher suites, in order of preference; default transport.AES128GCM
	// and transport.ChaCha20Poly1305.
	Suites []transport.Suite
	// Insecure permits the published development key on addresses other than loopback, and the
	// suite None. It is for measurements.
	Insecure bool
	// Shards is the number of sockets and goroutines that receive, decode and run handlers, default
	// 1, at most the number of processors or 4. On Linux the system spreads players over them;
	// elsewhere there is one. With several, handlers of different players run at the same time; see
	// the package's description.
	Shards int
	// Timeout is the time without a datagram after which a player's session ends; default 15 s.
	Timeout time.Duration
	// KeyLog, if set, receives a line with the secrets of each session, with which all datagrams
	// can be decrypted. It is for debugging; see docs/wireshark.md.
	KeyLog io.Writer
}

// Limits limits the resources that the players of a [Server] may use: Config.Limits. The zero value
// of each field means its default.
type Limits struct {
	// QueueBytes limits the size of the calls and messages that wait for Poll, in bytes with
	// overhead; default 16 MiB. Half of it is divided evenly among the players, and the other half
	// is for players who need more. Calls and messages that do not fit are dropped and counted as
	// queue_full. If a reliable frame is dropped, its player is disconnected.
	QueueBytes int
	// ReliableQueue is the maximum number of bytes of reliable data for a player that wait to be
	// sent or acknowledged: calls, messages, answers, and data of worlds. The default is 256 KiB,
	// the minimum 32 KiB. TotalReliableQueue is the maximum for all players together; default 64
	// MiB. If a message would exceed a limit, sending returns transport.ErrBacklog. See
	// [Player.ReliableRoom] and [Player.WaitReliable].
	ReliableQueue, TotalReliableQueue int
	// StreamRate is the maximum rate of all streams to one player together, in bytes/s with all
	// headers; default 256 KiB/s, at least 4 KiB/s. On a congested path it is less.
	StreamRate int
	// RateSlack is the permitted rate of a player's calls relative to the declared rate of the RPC,
	// 1 to 1e6; default 2. Bursts of two seconds at that rate are permitted. Frames above
	// the limit are dropped and counted as rate_limited, although they are baselines like others;
	// if one is reliable, its player is disconnected. Payloads are limited in the same way before
	// they are decoded, and may have at most 10 frames each on average, redundant ones included, or
	// 16 at the declared rate.
	RateSlack float64
	// MaxRate is the highest rate with which an RPC can be bound, in calls per second, up to 1000;
	// default 250. The rate of a schema that was passed to [HandleSchema] can be bound too. An RPC
	// with a [JitterBuffer] or a [TimeCheck] may have a fixed rate. The lowest rate is 0.001.
	MaxRate float64
	// MaxRejected is the number of frames rejected by [Validate] after which a player's session
	// ends; 0, the default, means no limit.
	MaxRejected int
}

// Tuning configures how the calls of players are decoded and acknowledged: Config.Tuning. The
// defaults suit most games. The zero value of each field means its default.
type Tuning struct {
	// Ring is the number of frames of each RPC and player that are kept as baselines, 2 to
	// 256; default 64. It should exceed the number of frames
	// that a client sends in one round trip plus one ack interval.
	Ring int
	// AckHz is the maximum number of datagrams per second that contain only acks of a player's
	// frames, of all its RPCs together. They are sent less often unless they save more bits than
	// they cost; see [rpcdelta.Decoder.AckPays]. Acks piggybacked on messages of a world count
	// towards AckHz: if they are more frequent, the server sends no datagrams with acks only. 1 to
	// 1000, default DefaultAckHz.
	AckHz float64
	// DeliverLate delivers late frames, marked as such, instead of dropping them.
	DeliverLate bool
	// Priors are the priors from which streams of the adaptive codec may start besides the built-in
	// one, including those of older clients. If a client names another prior, its stream starts
	// from the built-in one, which RPCStats counts.
	Priors []*prior.Prior
}

// Hooks are callbacks of a game for less common events: Config.Hooks. Nil callbacks are not called.
type Hooks struct {
	// Connected, if set, is called when a player has connected, before Joined: to offer worlds. A
	// player whom another server hands over receives them while the player is still at that server.
	// Joined is called when that server has released the player, or never. Until then the player is
	// not among [Server.Players], has no [Player.HandoverPayload], and nothing that it sends is
	// delivered.
	Connected func(*Player)
	// HandedOver, if set, is called with the outcome of each [Player.Handover], where handlers run.
	// The error is nil when this server has released the player: no more data of the player is
	// delivered here, and Left follows soon. Save the player's state in this call, because the
	// client may never reach the other server. With any other error, the player stays: it wraps
	// transport.ErrHandover if the client could not continue there, and also transport.ErrTimeout
	// if it did not switch in time, or transport.ErrUnhandled if the client supports no handovers.
	// If the session ends first, the error is that of Left, which follows.
	HandedOver func(*Player, error)
	// Moved, if set, is called when a player's address has changed from an earlier one to that of
	// [Player.Addr], in the same session, where handlers run. If the address changes several times
	// before a Poll, Moved is called for the first change only.
	Moved func(p *Player, from netip.AddrPort)
	// OnUnreliable, if set, is called for each message that players send with
	// client.Conn.SendUnreliable and that arrives, as OnMessage is. Messages above its rate limit,
	// or for which the queue for Poll has no room, are dropped and counted.
	OnUnreliable func(p *Player, message []byte)
	// OnRequest, if set, is called for each [Request] that players make with client.Conn.Request,
	// in one order with the messages of OnMessage, where handlers run. The game answers it there or
	// later. Without OnRequest, clients get transport.ErrUnhandled.
	OnRequest func(*Request)
	// OnStream, if set, is called with each stream that a player opens with client.Conn.OpenStream,
	// on a goroutine of its own, also with Poll. When it returns, the stream ends. It must not call
	// [Server.Close].
	OnStream func(*Player, transport.StreamReader)
	// PanicHandler, if set, is called when a callback of the game has panicked: a handler, a
	// validator, Joined, Left, HandedOver, Moved, OnMessage, OnUnreliable, OnRequest, OnStream, or
	// a method of Tap. It is also called when code that decodes data from a player has panicked.
	// Its arguments are the player for whom the callback was called (nil for Tap.Counted and
	// Tap.Resets), the value of the panic (nil after runtime.Goexit, as by FailNow of package
	// testing), and the goroutine's stack.
	//
	// Before the call the panic is counted (Stats.Panics) and logged with its stack. After the call
	// the player's session is closed. Left gets an error that wraps transport.ErrPanic. The client
	// gets transport.ErrKicked with the reason "internal server error", or with the reason of
	// [Player.Kick] if PanicHandler calls that. Frames of the player that wait are counted as
	// [Kicked]. The server and all other players continue.
	//
	// PanicHandler runs where the callback ran, or for a Tap on the goroutine that receives. A
	// panic in PanicHandler ends the process, unless the game recovers it around Poll. A mutex that
	// the callback held is still locked if no deferred function has unlocked it.
	PanicHandler func(p *Player, value any, stack []byte)
	// Tap, if set, observes what the server receives, decodes and sends.
	Tap Tap
}

func (c Config) withDefaults() (Config, error) {
	c.Tuning.Ring = cmp.Or(c.Tuning.Ring, rpcdelta.DefaultRing)
	c.Tuning.AckHz = cmp.Or(c.Tuning.AckHz, DefaultAckHz)
	c.Limits.QueueBytes = cmp.Or(c.Limits.QueueBytes, defaultQueueBytes)
	c.Limits.RateSlack = cmp.Or(c.Limits.RateSlack, defaultRateSlack)
	c.Limits.MaxRate = cmp.Or(c.Limits.MaxRate, defaultMaxRate)
	c.Limits.StreamRate = cmp.Or(c.Limits.StreamRate, streams.DefaultRate)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	err := cmp.Or(
		between("Tuning.Ring", c.Tuning.Ring, 2, rpcdelta.MaxRing),
		between("Tuning.AckHz", c.Tuning.AckHz, 1, 1000),
		notNegative("Limits.QueueBytes", c.Limits.QueueBytes),
		between("Limits.RateSlack", c.Limits.RateSlack, 1, maxRateSlack),
		upTo("Limits.MaxRate", c.Limits.MaxRate, 1000),
		between("Limits.StreamRate", c.Limits.StreamRate, streams.MinRate, math.MaxInt32),
		notNegative("Limits.MaxRejected", c.Limits.MaxRejected),
		notNegative("MaxPlayers", c.MaxPlayers),
		between("TickHz", cmp.Or(c.TickHz, 1), 1, 1000),
	)
	switch {
	case err != nil:
		return c, fmt.Errorf("ds: Config.%w", err)
	case slices.Contains(c.Tuning.Priors, nil):
		return c, errors.New("ds: Config.Tuning.Priors contains a nil")
	}
	return c, nil
}

// between returns an error if a field of a configuration is out of its range, or NaN.
func between[T cmp.Ordered](field string, v, least, most T) error {
	if v >= least && v <= most {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v to %v", field, v, least, most)
}

func upTo(field string, v, most float64) error {
	if v > 0 && v <= most {
		return nil
	}
	return fmt.Errorf("%s is %v, want more than 0, up to %v", field, v, most)
}

func notNegative(field string, v int) error {
	if v >= 0 {
		return nil
	}
	return fmt.Errorf("%s is %d, want 0 or more", field, v)
}

func (c *Config) ackInterval() time.Duration {
	return time.Duration(float64(time.Second) / c.Tuning.AckHz)
}

// tick returns the ack interval, or the part of it that is closest to the transport's usual tick:
// heartbeats and the reliable channel must not wait for infrequent acks.
func (c *Config) tick() time.Duration {
	interval := c.ackInterval()
	parts := (interval + endpoint.DefaultTick/2) / endpoint.DefaultTick
	return interval / max(parts, 1)
}

func (c *Config) rate(hz float64) ratelimit.Rate {
	perSecond := c.Limits.RateSlack * hz
	return ratelimit.Rate{PerSecond: perSecond, Burst: burstSeconds * perSecond}
}
