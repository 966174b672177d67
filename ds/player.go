package ds

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/transport"
)

// Player is one connected client. Its methods are safe for concurrent use, and from within
// handlers.
type Player struct {
	server   *Server
	shard    *shard
	conn     *endpoint.Conn
	overhead int // AEAD overhead per datagram, in bytes
	tap      PlayerTap
	bulk     *streams.Mux

	// Used only by the shard's goroutine:
	mistakes int  // number of mistakes of the client, see Player.mistake
	memory   int  // approximate memory of the bindings, in bytes
	due      bool // the player is in shard.due
	limits   limits
	requests []waitingBind // requests to bind that wait for a tick

	bindings bindings                  // RPCs that the client calls
	outgoing atomic.Pointer[outgoings] // RPCs that the server calls at the client; nil if none was bound

	asked struct {
		sync.Mutex
		open map[uint32]*Request // unanswered requests by id, at most message.MaxRequests
	}

	handover handover
	payload  []byte      // payload of the handover to this server; set before Joined is called
	awaits   atomic.Bool // another server has not released the player yet, so Joined has not been called
	standby  *standby    // set while awaits is true
	opened   time.Time   // time at which the session was opened
	leaves   atomic.Bool // the client was asked to leave

	quota   playerQuota
	moved   atomic.Bool                          // a call of Config.Hooks.Moved is pending
	kicked  atomic.Bool                          // waiting frames are not delivered any more
	failure atomic.Pointer[error]                // first panic of a callback for the player; set before kicked
	streams atomic.Pointer[replication.Replicas] // nil if no world was offered

	delivered atomic.Uint64
	missed    atomic.Uint64
	drops     [drops]atomic.Uint64
}

func newPlayer(h *shard, c *endpoint.Conn) *Player {
	cfg := &h.server.cfg
	p := &Player{
		server: h.server, shard: h, conn: c, overhead: c.Suite().Overhead(), opened: time.Now(),
		bindings: bindings{cfg: cfg, conn: c, counts: &h.acks},
	}
	p.limits.grant(cfg, 0, 0)
	return p
}

// ID returns the number of the player's session, which is random and unique.
func (p *Player) ID() uint64 { return p.conn.ID() }

// ClientID returns the client id from the player's connect token.
func (p *Player) ClientID() uint64 { return p.conn.ClientID() }

// UserData returns the backend's data from the player's connect token. It must not be modified.
func (p *Player) UserData() []byte { return p.conn.UserData() }

// Addr returns the address from which the player sends.
func (p *Player) Addr() netip.AddrPort { return p.conn.RemoteAddr() }

// RTT returns the smoothed round-trip time to the player, or 0 if it was not measured yet.
func (p *Player) RTT() time.Duration { return p.conn.RTT() }

// Kick ends the player's session. Config.Left and the client get errors that wrap
// transport.ErrKicked and contain the reason, of which the client gets the first 64 bytes. The
// client does not reconnect. From then on, no frame of the player is delivered: frames that wait
// for Poll are counted as [Kicked].
func (p *Player) Kick(reason string) { p.kick(transport.ErrKicked, reason) }

func (p *Player) kick(cause error, reason string) {
	p.kicked.Store(true)
	p.end(cause, reason)
}

// end closes the session. Unlike with Kick, waiting frames are still delivered.
func (p *Player) end(cause error, reason string) { p.conn.CloseWith(cause, reason) }

// exceed ends the session because the player exceeded a limit.
func (p *Player) exceed(format string, args ...any) {
	p.endLogged(transport.ErrLimit, fmt.Sprintf(format, args...))
}

// violate ends the session because the player violated the protocol.
func (p *Player) violate(reason string) { p.endLogged(transport.ErrProtocol, reason) }

func (p *Player) endLogged(cause error, reason string) {
	p.server.cfg.Logger.Warn("session ended", "player", p.ID(), "cause", cause, "reason", reason)
	p.end(cause, reason)
}

// note adds an event of the player.
func (p *Player) note(t eventType, text string, err error) {
	p.server.events.add(event{typ: t, player: p.ID(), client: p.ClientID(), text: text, err: err})
}

// MaxMessage is the maximum size of a message, in bytes.
const MaxMessage = message.MaxMessage

// SendReliable sends a copy of b, at most [MaxMessage] bytes, to the player, whose client calls
// client.Config.OnMessage. Messages of one session arrive in order and without gaps. SendReliable
// does not block. If [Limits.ReliableQueue] or [Limits.TotalReliableQueue] leaves no room, the
// error wraps transport.ErrBacklog and names the limit. After the end of the session, the error
// wraps net.ErrClosed. The channel takes about 21 KB at each end, until 2 s after the last message
// was acknowledged.
func (p *Player) SendReliable(b []byte) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("ds: a message of %d bytes, at most %d can be sent", len(b), MaxMessage)
	}
	if err := p.conn.SendReliable(message.AppendMessage(make([]byte, 0, 1+len(b)), b)); err != nil {
		return fmt.Errorf("ds: send to player %d: %w", p.ID(), err)
	}
	return nil
}

// ReliableRoom returns the size in bytes of the largest message that [Player.SendReliable] can send
// now, up to [MaxMessage]. [Limits.ReliableQueue] and [Limits.TotalReliableQueue] determine it. A
// reliable call needs about its own size.
func (p *Player) ReliableRoom() int { return min(max(p.conn.ReliableRoom()-1, 0), MaxMessage) }

// WaitReliable waits until there is room for n bytes, up to [MaxMessage], of a reliable message or
// call. Another goroutine may take the room first. The error is that of the context, or wraps
// net.ErrClosed after the end of the session. Callbacks of the server, such as handlers, must not
// call it, because there is no new room until they return.
func (p *Player) WaitReliable(ctx context.Context, n int) error {
	if err := p.conn.WaitReliable(ctx, n+1); err != nil {
		return fmt.Errorf("ds: player %d: %w", p.ID(), err)
	}
	return nil
}

// SendUnreliable sends a copy of b, at most transport.MaxPayload-1 bytes, to the player, whose
// client calls client.Config.Hooks.OnUnreliable if the message arrives: for effects that a later
// message replaces. It may be lost or arrive out of order. It is sent in a datagram of its own.
// SendUnreliable does not block. After the end of the session, the error wraps net.ErrClosed.
func (p *Player) SendUnreliable(b []byte) error {
	if len(b) >= transport.MaxPayload {
		return fmt.Errorf("ds: an unreliable message of %d bytes, at most %d can be sent", len(b), transport.MaxPayload-1)
	}
	if err := p.conn.Send(message.AppendMessage(make([]byte, 0, 1+len(b)), b)); err != nil {
		return fmt.Errorf("ds: send to player %d: %w", p.ID(), err)
	}
	return nil
}

// Rejected returns the number of the player's frames that [Validate] rejected.
func (p *Player) Rejected() uint64 { return p.drops[Rejected].Load() }

// Buffer returns the state of the jitter buffer of one of the player's RPCs. It reports false if
// the player has not bound the RPC or it has no jitter buffer.
func (p *Player) Buffer(rpc string) (BufferStats, bool) {
	s := &p.server.buffers
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		if who, of := b.owner(); who == p && of.rpc.schema.RPC() == rpc {
			return b.stats(), true
		}
	}
	return BufferStats{}, false
}

// PlayerStats contains the counts of one player.
type PlayerStats struct {
	// Frames counts the delivered frames of all RPCs, including those that [Validate] rejected.
	Frames uint64
	// Missed counts frames that were lost or dropped; see RPCStats.Missed.
	Missed uint64
	// Drops counts dropped messages, payloads and frames by reason.
	Drops [drops]uint64
	// Transport counts the player's datagrams and contains the round-trip time.
	Transport transport.Stats
	// Replication counts the messages of the worlds that are offered to the player.
	Replication []ReplicationStats
}

// Stats returns the player's counts.
func (p *Player) Stats() PlayerStats {
	st := PlayerStats{Frames: p.delivered.Load(), Missed: p.missed.Load(), Transport: p.conn.Stats()}
	for i := range p.drops {
		st.Drops[i] = p.drops[i].Load()
	}
	st.Replication = p.streams.Load().Stats()
	return st
}

func (p *Player) countDrop(d Drop) {
	p.drops[d].Add(1)
	h := p.shard
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drops[d]++
}

// drop counts a message that belongs to no RPC, and informs the tap.
func (p *Player) drop(at time.Time, d Drop) {
	p.countDrop(d)
	if p.tap != nil {
		p.tap.Dropped(at, -1, d, false)
	}
}

// dropFrame counts a payload or a frame of an RPC, and the frames that are known to be missed since
// the last count.
func (p *Player) dropFrame(b *binding, d Drop, missed uint64) {
	p.drops[d].Add(1)
	p.missed.Add(missed)
	b.counts.update(func(total *RPCStats) {
		total.Drops[d]++
		total.Missed += missed
	})
}

// dropPayload counts a payload of an RPC, and informs the tap. decoder reports whether the decoder
// found the reason.
func (p *Player) dropPayload(b *binding, at time.Time, d Drop, decoder bool) {
	p.dropFrame(b, d, 0)
	if p.tap != nil {
		p.tap.Dropped(at, b.number, d, decoder)
	}
}

// reject drops a message that no client sends. On the reliable channel, where a binding arrives
// before its frames and no rate limit counts such messages, it ends the session.
func (p *Player) reject(a *arrival, d Drop, reason string) {
	p.drop(a.at, d)
	if a.reliable {
		p.violate(reason)
	}
}

// Offer offers the player a world by its name, as snapshots; see [World.Offer].
func (p *Player) Offer(world string) (*SnapshotStream, error) {
	w, err := p.server.worldOf(world)
	if err != nil {
		return nil, err
	}
	return w.offer(p)
}

// OfferState offers the player a world by its name, as state; see [World.OfferState].
func (p *Player) OfferState(world string, cfg StateConfig) (*StateStream, error) {
	w, err := p.server.worldOf(world)
	if err != nil {
		return nil, err
	}
	return w.offerState(p, cfg)
}

// OpenStream opens a stream to the player, whose client calls client.Config.Hooks.OnStream with it.
// Streams are for data that is too large for messages, such as levels and replays. Streams do not
// delay messages, and are not ordered with them nor with each other. They share
// Config.Limits.StreamRate. The name has 1 to 128 bytes and does not begin with "uplink.". If ctx
// is done before the stream has ended, the stream is aborted with the cause of ctx.
//
// OpenStream never waits, but the stream's Write and Close do: a game loop calls them on another
// goroutine. At most 8 streams to a player are open at a time, and 16 a second can be opened, with
// bursts of 32; beyond that the error is transport.ErrBacklog. After the end of the session, the
// error wraps the reason.
func (p *Player) OpenStream(ctx context.Context, name string) (transport.StreamWriter, error) {
	w, err := p.bulk.Open(ctx, time.Now(), name)
	if err != nil {
		return nil, fmt.Errorf("ds: open a stream to player %d: %w", p.ID(), err)
	}
	return w, nil
}

// openStreams prepares a player for streams.
func (p *Player) openStreams() {
	p.bulk = streams.New((*streamOwner)(p))
	p.conn.SetBulk(p.server.cfg.Limits.StreamRate, p.bulk.Next, func(b []byte, at time.Time) {
		if err := p.bulk.Deliver(at, b); err != nil {
			p.drop(at, Malformed)
			p.violate(err.Error())
		}
	})
}
