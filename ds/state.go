package ds

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/evolve"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// This file declares the state of a server, and the lock or goroutine that guards each part.

// Server receives the RPCs of its players and replicates worlds to them. Its methods are safe for
// concurrent use.
type Server struct {
	cfg     Config
	ln      *transport.Listener
	shards  []*shard
	queue   queue
	buffers jitterBuffers
	events  events
	polls   *tickClock // nil without Config.TickHz
	polled  uint64     // calls of Poll; of its goroutine

	mu     sync.Mutex         // guards rpcs and worlds
	rpcs   map[string]*rpc    // by name
	worlds map[string]*served // by name

	predicts   atomic.Bool                          // an RPC is registered with ForPrediction
	panics     atomic.Uint64                        // recovered panics
	asked      atomic.Uint64                        // requests of players
	streamed   [2]atomic.Uint64                     // bytes of streams sent, received
	called     [2]atomic.Uint64                     // calls of clients' RPCs, bytes of their payloads
	streaming  sync.WaitGroup                       // calls of Config.OnStream
	silent     bool                                 // neither Config.Logger nor Config.PanicHandler is set
	profiling  atomic.Uint64                        // low 32 bits: mean payloads per measured one, 0 for none; high 32 bits: run
	leaving    atomic.Bool                          // Shutdown was called
	draining   atomic.Bool                          // Drain was called
	keys       atomic.Pointer[[]token.Key]          // the first one issues tokens for handovers
	outcome    atomic.Pointer[func(*Player, error)] // of Drain: is called with outcomes of handovers
	calls      atomic.Int64                         // calls of Joined and Left that wait for Poll
	member     *fleet.Member                        // nil without Config.Fleet
	membership sync.WaitGroup                       // calls of its Run
	addrs      atomic.Pointer[[]netip.AddrPort]     // of SetAddrs
	populated  atomic.Int32                         // shards that may have players, or get some
	drained    chan struct{}                        // closed when Shutdown need not wait any more
	drainOnce  sync.Once
	serving    atomic.Bool
	served     chan struct{} // closed when Serve returns
}

// served is a world without its type.
type served struct {
	joining  sync.Mutex
	server   atomic.Pointer[Server] // nil until the world belongs to a server; set with joining locked
	world    *replication.World
	ticks    *tickClock
	spreader *spreader
}

func (w *served) stats() ReplicationStats {
	st := w.world.Stats()
	st.Rate = w.ticks.rate()
	return st
}

// shard handles a part of the server's players. The transport calls its methods one at a time, on
// the shard's goroutine. A player stays in its shard.
type shard struct {
	server *Server
	index  int       // in Server.shards
	start  time.Time // of the rate limits' clock

	// Written by the shard's goroutine with mu, read by it without, and by others with mu.
	players map[*Player]struct{}

	// Of the shard's goroutine:
	arrival     arrival               // of the message that is being received
	due         []*Player             // have frames to ack
	initial     replication.SendQueue // of initial states
	polled      time.Time             // when the tap was last polled
	unpublished []*counts
	buf         []byte
	sequencing  []*sequencer // in which frames wait
	switched    []*Player    // to other servers
	awaiting    []*Player    // whom another server has not released
	resets      uint64       // last Tap.Resets
	counted     time.Time    // last Tap.Counted
	empty       bool         // the server shuts down and the last player has left

	mu        sync.Mutex  // guards the rest
	handing   []*outbound // that began in the last handoverLife
	acks      AckStats
	drops     [drops]uint64
	postponed []func() // handle panics of taps that were recovered while a lock was held
}

type arrival struct {
	at        time.Time
	since     time.Duration // since the shard's start, for rate limits
	reliable  bool
	number    uint64 // of its datagram, on the unreliable channel
	coalesced bool   // not the first payload of its datagram
	extra     int    // bytes that it added to the datagram besides its own
}

// Player is one connected client. Its methods are safe for concurrent use, and from within
// handlers.
type Player struct {
	server   *Server
	shard    *shard
	conn     *transport.Conn
	overhead int // AEAD overhead per datagram, in bytes
	tap      PlayerTap
	bulk     *streams.Mux

	// Of the shard's goroutine:
	bindings []*binding       // by RPC number; at most one of each RPC
	buffers  []jitterBuffer   // of the bindings that have one
	mistakes int              // of the client: see Player.mistake
	memory   int              // of the bindings, about, in bytes
	due      bool             // is in shard.due
	hz       float64          // sum of the bindings' rates
	rate     ratelimit.Rate   // of messages on the unreliable channel
	messages ratelimit.Bucket // likewise
	decoding ratelimit.Rate   // of the bytes of decoded frames on the unreliable channel
	decoded  ratelimit.Bucket // bytes of decoded frames
	binds    ratelimit.Bucket // requests to bind
	replies  ratelimit.Bucket // replies to offers, and answers to requests to bind
	sent     ratelimit.Bucket // reliable messages of the game

	// acks guards the acks: decoders while they decode or append an ack, and changes of bindings
	// and buffers, which others read than the shard's goroutine.
	acks struct {
		sync.Mutex
		sent     time.Time        // the last ones
		reported time.Time        // when the client was last told of its buffers
		carriers control.Carriers // messages of worlds
		buf      []byte           // acks and the message that they are sent with
	}

	asked struct {
		sync.Mutex
		open map[uint32]*Request // without an answer, by id; at most control.MaxRequests
	}

	handover handover
	payload  []byte      // of the handover to this server; set before Joined is called
	awaits   atomic.Bool // another server has not released the player, before Joined
	standby  *standby    // while awaits
	opened   time.Time   // the session
	leaves   atomic.Bool // the player is told to leave

	quota   playerQuota
	moved   atomic.Bool                         // a call of Config.Moved waits
	kicked  atomic.Bool                         // frames that wait are not delivered
	failure atomic.Pointer[error]               // first panic of a callback for the player; set before kicked
	streams atomic.Pointer[replication.Streams] // nil if no world was offered

	outgoing atomic.Pointer[outgoings] // nil if no RPC of the client was bound

	delivered atomic.Uint64
	missed    atomic.Uint64
	drops     [drops]atomic.Uint64
}

// Request is a request of a client, which waits in client.Conn.Request for one call of Reply or
// Fail: in Config.OnRequest or later, by any goroutine. A request that the game never answers is
// one of the 64 that a player may have, until the client's context or the session ends. The methods
// are safe for concurrent use.
type Request struct {
	Player  *Player
	Message []byte // belongs to the game

	id       uint32
	answered error // what Reply and Fail return; nil until there is an answer. Guarded by Player.asked
}

// binding is one RPC of one player, who has no other one of that RPC: what it limits, such as calls
// and simulated time, the player cannot multiply. It belongs to the shard's goroutine except for
// rejected.
type binding struct {
	player   *Player
	rpc      *rpc
	version  *version
	sink     sink // the RPC's, a jitter buffer, a sequencer or a converter
	request  boundRequest
	number   int       // in headers
	ring     int       // frames that are kept
	here     *rpcShard // of the player's shard
	counts   *counts   // of here
	dec      *rpcdelta.Decoder
	reliable bool
	frames   uint64  // maximum per datagram
	batch    int     // maximum of new frames per datagram on a path without congestion
	hz       float64 // declared rate
	// frameSize is the maximum number of bytes of a frame with the client's fields.
	frameSize int
	// repairTime is the number of frames within which an ack lets the client repeat a payload.
	repairTime int
	repairAge  uint64         // maximum age of a repeated payload, in frames; 0 if none is repeated
	newest     uint64         // packet number of the newest decoded payload
	undecoded  int            // payloads dropped since then
	prior      *prior.Prior   // nil if the codec has none
	rate       ratelimit.Rate // of new frames
	limit      ratelimit.Bucket
	withheld   uint64        // frames missing since the last delivered one, those dropped here included
	rejected   uint64        // frames rejected since the last accepted one; of the handlers' goroutine
	time       *clientTime   // of the client; nil without a TimeCheck
	processed  atomic.Uint64 // sequence number after the newest frame for which the handler ran
}

// rpc is one RPC of the server, for all players. It does not change once Serve runs, except gone.
type rpc struct {
	schema  *schema.Schema
	sink    sink
	handler any // *handler[T]
	shards  []*rpcShard
	// buffer is nil if frames do not wait in jitter buffers, which newBuffer creates.
	buffer    *JitterBuffer
	newBuffer func(p *Player, b *binding, batch int) (jitterBuffer, error)
	gone      BufferStats // of players who left; guarded by Server.buffers
	predicted bool        // worlds tell clients which frames were processed
	time      *timeCheck  // or nil
}

// rpcShard is an RPC in one shard. It belongs to the shard's goroutine except for the counters.
type rpcShard struct {
	versions  []*version        // the last used one first
	scratch   *rpcdelta.Scratch // of all decoders
	converted *schema.Frame     // a frame of another version
	profiler  profiler

	unreliable, reliable counts
}

func (r *rpcShard) counts(reliable bool) *counts {
	if reliable {
		return &r.reliable
	}
	return &r.unreliable
}

// sink receives the decoded frames of an RPC. deliver returns an error if the frame does not hold a
// value of the RPC's type, or an errDrop.
type sink interface {
	deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error
}

type jitterBuffer interface {
	sink
	owner() (*Player, *binding)
	// release runs the handlers of the frames that are due in a Poll, and returns their number.
	release(now time.Time) int
	// close ends the buffer. If the player was kicked, frames that wait are counted as dropped.
	close()
	stats() BufferStats
}

type jitterBuffers struct {
	mu  sync.Mutex
	all []jitterBuffer

	// Of Poll:
	due  []jitterBuffer
	next int // of due
}

// version is an RPC as some clients call it: with the server's fields or other ones, at the rate
// that they declared.
type version struct {
	fields     []string           // descriptions; nil if they are the server's
	schema     *schema.Schema     // of the frames that clients send, with their rate and factors
	conversion *evolve.Conversion // to the server's fields; nil if they are the same
}

// converter is the sink of an RPC whose client has other fields than the server.
type converter struct {
	sink sink
	*version
}

// sequencer is the sink of an RPC whose client repeats lost payloads. It delivers in sequence:
// frames that follow a missing one wait for it until its deadline. It belongs to the shard's
// goroutine.
type sequencer struct {
	sink     sink
	player   *Player
	binding  *binding
	schema   *schema.Schema
	deadline int           // in frames
	patience time.Duration // the same as a time, in case no more frames come
	repairs  func() bool   // whether a lost payload can still arrive in time

	started   bool
	listed    bool           // in shard.sequencing
	next      uint64         // sequence of the next frame to deliver
	repairing uint64         // sequence up to which the client is known to repeat payloads
	waiting   []waitingFrame // by sequence; those beyond the length are kept for reuse
}

type waitingFrame struct {
	delivery rpcdelta.Delivery
	at       time.Time
}
