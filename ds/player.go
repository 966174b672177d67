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
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/streams"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/session"
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

	// Of the shard's goroutine:
	bindings     []*binding       // by RPC number; at most one of each RPC
	buffers      []jitterBuffer   // of the bindings that have one
	mistakes     int              // of the client: see Player.mistake
	memory       int              // of the bindings, about, in bytes
	due          bool             // is in shard.due
	hz           float64          // sum of the bindings' rates
	rate         ratelimit.Rate   // of messages on the unreliable channel
	messages     ratelimit.Bucket // likewise
	decoding     ratelimit.Rate   // of the bytes of decoded frames on the unreliable channel
	decoded      ratelimit.Bucket // bytes of decoded frames
	binds        ratelimit.Bucket // requests to bind
	waitingBinds int              // costs of those that wait for a tick, see [bindCost]
	replies      ratelimit.Bucket // replies to offers, and answers to requests to bind
	sent         ratelimit.Bucket // reliable messages of the game

	// acks guards the acks: decoders while they decode or append an ack, and changes of bindings
	// and buffers, which others read than the shard's goroutine.
	acks struct {
		sync.Mutex
		sent     time.Time        // the last ones
		reported time.Time        // when the client was last told of its buffers
		carriers message.Carriers // messages of worlds
		buf      []byte           // acks and the message that they are sent with
	}

	asked struct {
		sync.Mutex
		open map[uint32]*Request // without an answer, by id; at most message.MaxRequests
	}

	handover handover
	payload  []byte      // of the handover to this server; set before Joined is called
	awaits   atomic.Bool // another server has not released the player, before Joined
	standby  *standby    // while awaits
	opened   time.Time   // the session
	leaves   atomic.Bool // the player is told to leave

	quota   playerQuota
	moved   atomic.Bool                         // a call of Config.Hooks.Moved waits
	kicked  atomic.Bool                         // frames that wait are not delivered
	failure atomic.Pointer[error]               // first panic of a callback for the player; set before kicked
	streams atomic.Pointer[replication.Streams] // nil if no world was offered

	outgoing atomic.Pointer[outgoings] // nil if no RPC of the client was bound

	delivered atomic.Uint64
	missed    atomic.Uint64
	drops     [drops]atomic.Uint64
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

// Kick ends the player's session. Config.Left and the client get errors that wrap session.ErrKicked
// and contain the reason, of which the client gets the first 64 bytes. The client does not
// reconnect. No frame of the player is delivered any more: those that wait for Poll are counted as
// [Kicked].
func (p *Player) Kick(reason string) { p.kick(session.ErrKicked, reason) }

func (p *Player) kick(cause error, reason string) {
	p.kicked.Store(true)
	p.end(cause, reason)
}

// end closes the session. Unlike with Kick, frames that wait are still delivered.
func (p *Player) end(cause error, reason string) { p.conn.CloseWith(cause, reason) }

// exceed ends the session because the player exceeded a limit.
func (p *Player) exceed(format string, args ...any) {
	p.endLogged(session.ErrLimit, fmt.Sprintf(format, args...))
}

// violate ends the session because the player violated the protocol.
func (p *Player) violate(reason string) { p.endLogged(session.ErrProtocol, reason) }

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
// error wraps session.ErrBacklog and names the limit. After the end of the session, the error wraps
// net.ErrClosed. The channel takes about 21 KB at each end, until 2 s after the last message was
// acknowledged.
func (p *Player) SendReliable(b []byte) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("ds: a message of %d bytes, at most %d can be sent", len(b), MaxMessage)
	}
	if err := p.conn.SendReliable(message.AppendMessage(make([]byte, 0, 1+len(b)), b)); err != nil {
		return fmt.Errorf("ds: send to player %d: %w", p.ID(), err)
	}
	return nil
}

// ReliableRoom returns how many bytes a message of [Player.SendReliable] may have now, up to
// [MaxMessage]: what waits for the player and for all players leaves so much room. Calls take about
// their size in it.
func (p *Player) ReliableRoom() int { return min(max(p.conn.ReliableRoom()-1, 0), MaxMessage) }

// WaitReliable waits until there is room for n bytes, up to [MaxMessage], of a reliable message or
// call. Another goroutine may take the room first. The error is that of the context, or wraps
// net.ErrClosed after the end of the session. Callbacks of the server, such as handlers, must not
// call it: they would hold up what makes room.
func (p *Player) WaitReliable(ctx context.Context, n int) error {
	if err := p.conn.WaitReliable(ctx, n+1); err != nil {
		return fmt.Errorf("ds: player %d: %w", p.ID(), err)
	}
	return nil
}

// SendUnreliable sends a copy of b, at most transport.MaxPayload-1 bytes, to the player, whose
// client calls client.Config.OnUnreliable if the message arrives: for effects that a later message
// makes up for. It may be lost, and may overtake others. It has a datagram of its own.
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

// PlayerStats counts what was received from one player.
type PlayerStats struct {
	// Frames counts the delivered frames of all RPCs, including those that [Validate] rejected.
	Frames uint64
	// Missed counts frames that were never delivered, as far as later frames show.
	Missed uint64
	// Drops counts all that was dropped, by reason.
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

// A player may call each RPC Config.Limits.RateSlack times as often as it declared, with bursts of
// two seconds of that: frames that the network held back and delivers all at once must not count
// against the player. Three things are limited. Payloads are counted before they are decoded. New
// frames are counted afterwards, since only then it is known which they are. And all decoded frames
// are counted, redundant ones included, in bytes of frames, since they take the server's time: a
// payload is not decoded while those before it were too many. That limit follows from the frames of
// the server, whatever the fields of the client are.
const (
	// meanFrames is the number of frames that the payloads of the permitted rate may have on
	// average. A client that calls as often as it declared may have all MaxFrames in each.
	meanFrames = 10
	// burstSeconds is the size of bursts, in seconds at the permitted rate.
	burstSeconds = 2
	// controlHz is the permitted rate of replies to offers and answers to requests to bind, and of
	// datagrams besides frames and acks.
	controlHz = 50
	// bindHz is the permitted rate of requests to bind, on both channels together, where one counts
	// once more per bindUnit bytes, since descriptions of fields cost the server more. A client
	// repeats a request at most ten times a second until it is answered; if it binds all its RPCs
	// at once, some of the requests may have to be repeated. So is one that would wait for a tick
	// besides others of the player that are together more than a burst.
	bindHz   = 50
	bindUnit = 256
	// spareBinds is added to bursts of requests to bind, which are four for each RPC.
	spareBinds = 16
	// callAckHz is the rate of a client's acks of one RPC that the server calls.
	callAckHz = 10
	// spareFrames is added to bursts of frames, for RPCs with a very low declared rate.
	spareFrames = rpcdelta.MaxHeld
	// spareReliable is added to bursts on the reliable channel: the frames that can wait in it
	// while the network is interrupted.
	spareReliable = 512
)

// allow reports whether the player may send one more message of type t. Requests to bind have a
// rate limit of their own, and replies to offers and answers another: each costs the server more
// than a frame. Reliable frames and the game's messages are limited where they are received.
func (p *Player) allow(t message.Type, body []byte, a *arrival) bool {
	switch {
	case t == message.Bind:
		rate := ratelimit.Rate{PerSecond: bindHz, Burst: spareBinds + 4*float64(p.server.countRPCs())}
		cost := float64(bindCost(body))
		return float64(p.waitingBinds)+cost <= rate.Burst && p.binds.Take(a.since, rate, cost)
	case t == message.Reply || t == message.Bound:
		return p.replies.Take(a.since, ratelimit.Rate{PerSecond: controlHz, Burst: burstSeconds*controlHz + message.MaxCalls}, 1)
	case a.reliable || t == message.Message:
		return true
	}
	rate := p.rate
	if s, calls := p.streams.Load(), p.calls(); s != nil || calls > 0 { // it acks worlds and calls too
		hz := controlHz + p.hz + callAckHz*float64(calls)
		if s != nil {
			hz += s.AckHz()
		}
		rate = p.server.cfg.rate(hz)
	}
	payloads := 1 // to be decoded or answered
	if t == message.Bundle {
		f := message.ParseBundle(body)
		payloads = f.Left()
	}
	if t == message.Acks { // several of them count as several
		payloads = countAcks(body)
	}
	return p.messages.Take(a.since, rate, float64(payloads))
}

// grant adds to the limits for a binding with a declared rate, of an RPC whose frames have at most
// that many bytes with the server's fields.
func (p *Player) grant(hz float64, frame int) {
	p.hz += hz
	p.rate = p.server.cfg.rate(controlHz + p.hz)
	permitted := p.server.cfg.rate(hz)
	p.decoding.PerSecond += max(rpcdelta.MaxFrames*hz, meanFrames*permitted.PerSecond) * float64(frame)
	p.decoding.Burst += rpcdelta.MaxFrames * (permitted.Burst + spareFrames) * float64(frame)
}

// Offer offers the player the world of that name as snapshots; see [World.Offer].
func (p *Player) Offer(world string) (*SnapshotStream, error) {
	w, err := p.server.worldOf(world)
	if err != nil {
		return nil, err
	}
	return w.offer(p)
}

// OfferState offers the player the world of that name by state synchronization; see
// [World.OfferState].
func (p *Player) OfferState(world string, cfg StateConfig) (*StateStream, error) {
	w, err := p.server.worldOf(world)
	if err != nil {
		return nil, err
	}
	return w.offerState(p, cfg)
}

// OpenStream opens a stream to the player, whose client calls client.Config.OnStream with it: for
// more than fits a message, such as levels and replays. Streams do not delay messages, and are not
// ordered with them nor with each other. They share Config.Limits.StreamRate. The name has 1 to 128
// bytes and does not begin with "uplink.". If ctx is done before the stream is over, the stream is
// aborted with the cause of ctx.
//
// OpenStream never waits, but the stream's Write and Close do: a game loop calls them on another
// goroutine. At most 8 streams to a player are open at a time, and 16 a second can be opened, with
// bursts of 32; beyond that the error is session.ErrBacklog. After the end of the session, the
// error wraps the reason.
func (p *Player) OpenStream(ctx context.Context, name string) (session.StreamWriter, error) {
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
