package ds

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// Player is one connected client. Its methods are safe for concurrent use, and
// from within handlers.
type Player struct {
	server *Server
	shard  *shard
	conn   *transport.Conn
	seal   int // bytes that each datagram is longer by it
	tap    PlayerTap

	// Of the shard's goroutine alone:
	bindings []*binding       // by RPC number
	buffers  []buffered       // of those that have one
	told     time.Time        // when it was told of them
	refusals int              // bindings whose refusal was logged
	due      bool             // is in the shard's list
	hz       float64          // of all bindings
	rate     ratelimit.Rate   // of what it may send on the unreliable channel
	messages ratelimit.Bucket // of that
	requests ratelimit.Bucket // requests to bind and replies to offers
	sent     ratelimit.Bucket // of the game's own messages

	waiting holding
	kicked  atomic.Bool
	failure atomic.Pointer[error]       // the first panic of a callback for the player; set before kicked
	down    atomic.Pointer[downstreams] // nil where there are none

	delivered atomic.Uint64
	missed    atomic.Uint64
	drops     [drops]atomic.Uint64
}

// binding is one RPC of one player.
type binding struct {
	rpc      *rpc
	sink     sink      // the RPC's, or a buffer
	number   int       // in headers
	here     *rpcShard // of the player's shard
	counts   *counts   // of that
	dec      *rpcdelta.Decoder
	reliable bool
	frames   uint64           // that a datagram brings at most
	newest   uint64           // number of the datagram with the newest payload that was taken
	prior    *rpcdelta.Prior  // that its frames start from; nil if its codec has none
	rate     ratelimit.Rate   // of new frames
	taken    ratelimit.Bucket // of it
	refused  uint64           // frames since the last that was delivered, that the game refused; of handlers' goroutine
	withheld uint64           // frames since the last that was delivered, this end's drops included
}

// newPlayer makes one of that shard.
func newPlayer(h *shard, c *transport.Conn) *Player {
	p := &Player{server: h.server, shard: h, conn: c}
	p.grant(0)
	return p
}

// ID is the number of the player's session, random and never used again.
func (p *Player) ID() uint64 { return p.conn.ID() }

// ClientID is who the player is, by its connect token.
func (p *Player) ClientID() uint64 { return p.conn.ClientID() }

// UserData is what the game's backend has put into the player's connect token. It
// must not be written to.
func (p *Player) UserData() []byte { return p.conn.UserData() }

// Addr is where the player's datagrams come from.
func (p *Player) Addr() netip.AddrPort { return p.conn.RemoteAddr() }

// RTT is the smoothed round trip to the player; 0 until it was measured.
func (p *Player) RTT() time.Duration { return p.conn.RTT() }

// Kick ends the player's session and tells it the reason, cut to 64 bytes: the
// client sees client.ErrKicked with it, and does not come back by itself. None of
// the player's frames is delivered any more: those that wait for Poll are counted
// as dropped, as [Kicked]. Config.Left is still called.
func (p *Player) Kick(reason string) {
	p.kicked.Store(true)
	p.end(reason)
}

// end is Kick for what is not the game's wish: frames that wait are delivered.
func (p *Player) end(reason string) { p.conn.CloseWith(reason) }

func (p *Player) binding(n int) *binding {
	if n < len(p.bindings) {
		return p.bindings[n]
	}
	return nil
}

func (p *Player) bind(n int, b *binding) {
	for len(p.bindings) <= n {
		p.bindings = append(p.bindings, nil)
	}
	p.bindings[n] = b
}

// bound is how many bindings there are.
func (p *Player) bound() int {
	n := 0
	for _, b := range p.bindings {
		if b != nil {
			n++
		}
	}
	return n
}

// receive takes one message of either channel.
func (p *Player) receive(b []byte, at time.Time, reliable bool) {
	a := &p.shard.arrival
	a.at, a.since, a.reliable, a.shared = at, at.Sub(p.shard.start), reliable, false
	t, body, err := control.Split(b)
	switch {
	case err != nil:
		p.reject(a, Malformed, "unknown reliable message")
	case !p.allow(t, body, a):
		p.discard(at, RateLimited)
		if reliable { // messages of this channel must not be dropped
			p.violate("too many requests to bind and replies to offers")
		}
	case t == control.Frame:
		p.receiveFrame(b, a)
	case t == control.Message && reliable:
		p.receiveMessage(body, a)
	case t == control.Bundle && !reliable:
		p.receiveBundle(body, a)
	case t == control.DownAck && !reliable:
		p.receiveDownAck(body, at)
	case t == control.Reply && reliable:
		p.receiveReply(body, a)
	case t == control.Bind:
		p.receiveBind(body, a)
	default: // a client has nothing to ack or to answer
		p.reject(a, Malformed, "unknown reliable message")
	}
}

// reject counts a message that no client sends. On the reliable channel it ends the session for that reason: there a
// binding arrives before its frames, and no limit counts such messages.
func (p *Player) reject(a *arrival, d Drop, reason string) {
	p.discard(a.at, d)
	if a.reliable {
		p.violate(reason)
	}
}

// violate ends the session of a client that does not keep to the protocol.
func (p *Player) violate(reason string) {
	p.server.cfg.Logger.Warn("session ended", "player", p.ID(), "reason", reason)
	p.end(reason)
}

// receiveBind takes a request to bind.
func (p *Player) receiveBind(b []byte, a *arrival) {
	r, err := control.ParseBindRequest(b)
	if err != nil {
		p.reject(a, Malformed, "malformed bind request")
		return
	}
	p.server.answer(p, &r)
}

// receiveBundle takes each frame of a bundle.
func (p *Player) receiveBundle(b []byte, a *arrival) {
	for f := control.ParseBundle(b); f.Left() > 0; {
		var payload []byte
		var err error
		a.shared = f.Shared()
		if payload, a.extra, err = f.Next(); err != nil {
			p.discard(a.at, Malformed)
			return
		}
		p.receiveFrame(payload, a)
	}
}

// arrival is how a payload came.
type arrival struct {
	at       time.Time
	since    time.Duration // the shard's start, for limits
	reliable bool
	shared   bool // in a datagram after another one
	extra    int  // bytes that it added there beside its own
}

// shortReach is how many sequences the short header of a payload tells apart from
// there backward.
const shortReach = 64

// overtaken says that so many datagrams came before one that the sequences of its
// payload cannot be told from newer ones. Its own frames count too: it may have
// several payloads, the first of which is that much older than the last.
func (b *binding) overtaken(number uint64) bool {
	return !b.reliable && number < b.newest && (b.newest-number+1)*b.frames > shortReach
}

func (p *Player) receiveFrame(payload []byte, a *arrival) {
	reliable := a.reliable
	n, err := rpcdelta.PeekRPC(payload)
	if err != nil {
		p.reject(a, Malformed, malformedFrame)
		return
	}
	b := p.binding(n)
	if b == nil || b.reliable != reliable {
		p.reject(a, UnknownRPC, "reliable frame of an RPC that is not bound")
		return
	}
	number := p.conn.Number()
	if b.overtaken(number) {
		p.discardPayload(b, a.at, Late, false)
		return
	}
	frames, err := p.server.decode(b, payload)
	p.noteAck(b)
	if err != nil {
		p.discardPayload(b, a.at, reason(err), true)
		if reliable { // each frame refers to the one before: none after it can be read
			p.violate(malformedFrame)
		}
		return
	}
	b.newest = max(b.newest, number)
	if p.tap != nil {
		p.tap.Decoded(a.at, n, frames)
	}
	delivered := 0 // of the frames, which come to lie first
	for i := range frames {
		missed, err := b.deliver(p, &frames[i], a)
		switch {
		case err == nil:
			frames[i].Missed = missed
			p.miss(&frames[i])
			if delivered != i {
				frames[delivered] = frames[i]
			}
			delivered++
		case reliable: // every one is promised: better none than one too few
			p.count(b, frames[:delivered], 0, a)
			p.end(undelivered(err))
			return
		}
	}
	p.count(b, frames[:delivered], len(payload), a)
}

// noteAck notes that the player has something to be told, if that is so.
func (p *Player) noteAck(b *binding) {
	if b.dec.AckDue() && !p.due {
		p.due = true
		p.shard.due = append(p.shard.due, p)
	}
}

// miss counts the frames that are known to be missed since one was delivered.
func (p *Player) miss(d *rpcdelta.Delivery) {
	switch {
	case d.Late:
		p.missed.Add(^uint64(0)) // it was one
	case d.Missed != 0:
		p.missed.Add(d.Missed)
	}
}

// malformedFrame is what a player is told whose reliable frame cannot be read.
const malformedFrame = "malformed reliable frame"

// undelivered is what a player is told whose reliable frame cannot be delivered.
func undelivered(err error) string {
	switch {
	case errors.Is(err, errQueueFull):
		return "too many frames wait for the game"
	case errors.Is(err, errLimited):
		return "called more often than the RPC's rate allows"
	}
	return malformedFrame
}

// deliver delivers a frame, and says how many before it are known to be missed
// since the last one. If it cannot, it counts that.
func (b *binding) deliver(p *Player, d *rpcdelta.Delivery, a *arrival) (missed uint64, err error) {
	missed = d.Missed
	if !d.Late {
		d.Missed += b.withheld
		b.withheld = 0
	}
	err = errLimited
	if b.taken.Take(a.since, b.rate, 1) {
		err = b.sink.deliver(p, b, d, a.at)
	}
	if err != nil {
		if !d.Late {
			b.withheld = d.Missed + 1
			missed++
		}
		p.dropFrame(b, reason(err), missed)
		if p.tap != nil {
			p.tap.Withheld(a.at, b.number, d.Seq, reason(err))
		}
	}
	return missed, err
}

// appendAcks appends the acks of all RPCs that have something to say, as many as
// fit into a datagram.
func (p *Player) appendAcks(dst []byte) []byte {
	const largest = 13
	for _, b := range p.bindings {
		if b != nil && b.dec.AckDue() && len(dst)+largest <= transport.MaxPayload {
			dst = b.dec.AppendAck(dst)
		}
	}
	return dst
}
