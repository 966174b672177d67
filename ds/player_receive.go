package ds

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/ratelimit"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

func (p *Player) receive(b []byte, at time.Time, reliable bool) {
	a := &p.shard.arrival
	a.at, a.since, a.reliable, a.coalesced, a.number = at, at.Sub(p.shard.start), reliable, false, p.conn.Number()
	p.handle(b, a)
}

// handle handles a message that was just received, or that was held until now.
func (p *Player) handle(b []byte, a *arrival) {
	at, reliable := a.at, a.reliable
	t, body, err := message.Split(b)
	for ; t == message.DownAck && !reliable; t, body, err = message.Split(b) {
		if !p.allow(t, body, a) {
			p.drop(at, RateLimited)
			return
		}
		if b = p.receiveDownAck(body, at); len(b) == 0 {
			return
		}
	}
	switch {
	case err != nil:
		p.reject(a, Malformed, "unknown reliable message")
	case p.awaits.Load() && !usesStandby(t):
		p.hold(b, a)
	case !p.handover.switched.IsZero() && !usesFormer(t, reliable):
		p.reject(a, UnknownRPC, "a message after the switch to another server")
	case !p.allow(t, body, a):
		p.drop(at, RateLimited)
		if reliable { // messages of this channel must not be dropped
			p.exceed("more than %d requests to bind, or %d replies, a second", bindHz, controlHz)
		}
	case t == message.Frame:
		p.receivePayload(b, a)
	case t == message.Message && reliable:
		p.receiveMessage(body, a, p.server.cfg.OnMessage)
	case t == message.Message:
		p.receiveMessage(body, a, p.server.cfg.Hooks.OnUnreliable)
	case t == message.Request && reliable:
		p.receiveRequest(body, a)
	case t == message.Bundle && !reliable:
		p.receiveBundle(body, a)
	case t == message.Reply && reliable:
		if !p.receiveReply(body, a) {
			p.reject(a, Malformed, "reply to no offer")
		}
	case t == message.Acks && !reliable:
		if !p.outgoing.Load().handleAcks(body) {
			p.drop(at, InvalidAck)
		}
	case t == message.Bound && reliable:
		if answer, err := message.ParseBindAnswer(body); err != nil || !p.outgoing.Load().handleAnswer(&answer) {
			p.reject(a, Malformed, "answer to no request to bind")
		}
	case t == message.Handover && reliable:
		p.receiveHandover(body, a)
	case t == message.Bind:
		p.shard.receiveBind(p, body, a)
	default:
		p.reject(a, Malformed, "unknown reliable message")
	}
}

// noteAck lists the player for the next acks if a binding has some to send.
func (p *Player) noteAck(b *binding) {
	if p.due {
		return
	}
	p.bindings.Lock()
	p.due = b.dec.AckDue()
	p.bindings.Unlock()
	if p.due {
		p.shard.due = append(p.shard.due, p)
	}
}

// allow reports whether the player may send one more message of type t. Requests to bind have a
// separate rate limit, and so do replies to offers and answers, because each costs the server more
// than a frame. Reliable frames and the game's messages are limited by their own handlers.
func (p *Player) allow(t message.Type, body []byte, a *arrival) bool {
	switch {
	case t == message.Bind:
		rate := ratelimit.Rate{PerSecond: bindHz, Burst: spareBinds + 4*float64(p.server.countRPCs())}
		cost := float64(bindCost(body))
		return float64(p.limits.waitingBinds)+cost <= rate.Burst && p.limits.binds.Take(a.since, rate, cost)
	case t == message.Reply || t == message.Bound:
		return p.limits.replies.Take(a.since, ratelimit.Rate{PerSecond: controlHz, Burst: burstSeconds*controlHz + message.MaxCalls}, 1)
	case a.reliable || t == message.Message:
		return true
	}
	rate := p.limits.rate
	// The client also acks worlds and calls.
	if s, calls := p.streams.Load(), p.outgoing.Load().count(); s != nil || calls > 0 {
		hz := controlHz + p.limits.hz + callAckHz*float64(calls)
		if s != nil {
			hz += s.AckHz()
		}
		rate = p.server.cfg.rate(hz)
	}
	payloads := 1 // payloads to decode or answer
	if t == message.Bundle {
		f := message.ParseBundle(body)
		payloads = f.Left()
	}
	if t == message.Acks { // each ack counts
		payloads = countAcks(body)
	}
	return p.limits.messages.Take(a.since, rate, float64(payloads))
}

// receiveDownAck handles the ack of a replication stream, and returns the message that follows it.
func (p *Player) receiveDownAck(b []byte, at time.Time) (msg []byte) {
	ack, msg := message.CutDownAck(b)
	err := p.streams.Load().HandleAck(ack, at)
	d := Malformed
	if errors.Is(err, replication.ErrInvalidAck) {
		d = InvalidAck
	}
	switch {
	case err == nil:
	case len(msg) == 0:
		p.drop(at, d)
	default:
		p.countDrop(d) // the tap is informed when the following message is handled
	}
	return msg
}

func (p *Player) receiveBundle(b []byte, a *arrival) {
	for f := message.ParseBundle(b); f.Left() > 0; {
		var payload []byte
		var err error
		a.coalesced = f.Shared()
		if payload, a.extra, err = f.Next(); err != nil {
			p.drop(a.at, Malformed)
			return
		}
		p.receivePayload(payload, a)
	}
}

const malformedFrame = "malformed reliable frame"

func (p *Player) receivePayload(payload []byte, a *arrival) {
	n, err := rpcdelta.PeekRPC(payload)
	if err != nil {
		p.reject(a, Malformed, malformedFrame)
		return
	}
	b := p.bindings.at(n)
	if b == nil || b.reliable != a.reliable {
		p.reject(a, UnknownRPC, "reliable frame of an RPC that is not bound")
		return
	}
	number := a.number
	if b.ambiguous(number) {
		p.dropPayload(b, a.at, Late, false)
		return
	}
	if !a.reliable && !p.limits.decoded.Has(a.since, p.limits.decoding, 0) {
		b.undecoded++
		p.dropPayload(b, a.at, RateLimited, false)
		return
	}
	frames, err := p.decode(b, payload)
	if !a.reliable { // a reliable payload has one frame
		p.limits.decoded.Spend(a.since, p.limits.decoding, float64(b.dec.Decoded()*b.frameSize))
	}
	p.noteAck(b)
	if err != nil {
		b.undecoded++
		p.dropPayload(b, a.at, reason(err), true)
		if a.reliable { // each frame refers to the one before, so no later frame can be decoded
			p.violate(malformedFrame)
		}
		return
	}
	if p.tap != nil {
		p.tap.Decoded(a.at, n, frames)
	}
	b.markRecovered(frames, number)
	b.newest, b.undecoded = max(b.newest, number), 0
	delivered := 0 // number of delivered frames, which are moved to the front
	for i := range frames {
		missed, err := p.deliver(b, &frames[i], a)
		switch {
		case err == nil:
			frames[i].Missed = missed
			if delivered != i {
				frames[delivered] = frames[i]
			}
			delivered++
		case a.reliable: // no frame of this channel may be missing
			p.count(b, frames[:delivered], 0, a)
			p.endUndelivered(b, reason(err))
			return
		}
	}
	p.count(b, frames[:delivered], len(payload), a)
}

func (p *Player) decode(b *binding, payload []byte) ([]rpcdelta.Delivery, error) {
	p.bindings.Lock()
	defer p.bindings.Unlock()
	return b.decode(p.server.profiling.Load(), payload)
}

// endUndelivered ends the session because a reliable frame was dropped.
func (p *Player) endUndelivered(b *binding, d Drop) {
	switch d {
	case QueueFull:
		p.exceed(queueExceeded, p.server.cfg.Limits.QueueBytes)
	case RateLimited:
		p.exceed("more than %v calls a second of an RPC bound at %v: %s", b.rate.PerSecond, b.hz, b.rpc.schema.RPC())
	default:
		p.violate(malformedFrame)
	}
}

const messagesExceeded = "messages of more than %v KiB a second"

const queueExceeded = "the calls for Poll exceed QueueBytes, %d"

// deliver delivers a frame. It returns the number of frames before it that are newly known to be
// missed. If the frame is dropped, deliver counts it as dropped and missed.
func (p *Player) deliver(b *binding, d *rpcdelta.Delivery, a *arrival) (missed uint64, err error) {
	missed = d.Missed
	if !d.Late {
		d.Missed += b.withheld
		b.withheld = 0
	}
	err = errDrop(RateLimited)
	if b.limit.Take(a.since, b.rate, 1) {
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

// count counts the delivered frames of a payload, and the payload. size is the size of the payload
// in bytes. It is 0 if a frame of the payload ended the session; then the payload is not counted.
func (p *Player) count(b *binding, frames []rpcdelta.Delivery, size int, a *arrival) {
	p.delivered.Add(uint64(len(frames)))
	c := b.counts
	if !c.listed {
		c.listed = true
		p.shard.unpublished = append(p.shard.unpublished, c)
	}
	st := &c.fresh
	for i := range frames {
		d := &frames[i]
		st.count(d)
		switch {
		case d.Late:
			p.missed.Add(^uint64(0)) // it was counted as missed
		case d.Missed != 0:
			p.missed.Add(d.Missed)
		}
	}
	switch {
	case size == 0:
		return
	case a.coalesced:
		st.Coalesced++
		st.CoalescedBytes += uint64(a.extra)
	default:
		st.AEADBytes += uint64(p.overhead)
	}
	st.Messages++
	st.Bytes += uint64(size)
}

// receiveRequest handles a request of the client, or its cancellation.
func (p *Player) receiveRequest(b []byte, a *arrival) {
	k, id, body, err := message.ParseRequest(b)
	switch {
	case err != nil || k != message.Ask && k != message.Cancel:
		p.reject(a, Malformed, "malformed request")
	case k == message.Ask && !p.handover.switched.IsZero():
		p.reject(a, UnknownRPC, "a request after the switch to another server")
	case k == message.Ask:
		if r := p.openRequest(id, a); r != nil {
			p.receiveMessage(body, a, r.handle)
		}
	case !p.limits.sent.Take(a.since, message.DSMessages, message.MessageCost(0)):
		p.drop(a.at, RateLimited)
		p.exceed(messagesExceeded, message.DSMessages.PerSecond/1024)
	default:
		p.cancelRequest(id)
	}
}

// openRequest registers a request, or ends the session and returns nil.
func (p *Player) openRequest(id uint32, a *arrival) *Request {
	p.asked.Lock()
	defer p.asked.Unlock()
	switch {
	case len(p.asked.open) >= message.MaxRequests:
		p.drop(a.at, RateLimited)
		p.exceed("more than %d requests without an answer", message.MaxRequests)
		return nil
	case p.asked.open[id] != nil:
		p.reject(a, Malformed, "two requests with the same id")
		return nil
	case p.asked.open == nil:
		p.asked.open = map[uint32]*Request{}
	}
	r := &Request{Player: p, id: id}
	p.asked.open[id] = r
	return r
}

// cancelRequest handles the end of the client's wait for an answer, which may be on its way.
func (p *Player) cancelRequest(id uint32) {
	p.asked.Lock()
	defer p.asked.Unlock()
	if r := p.asked.open[id]; r != nil {
		r.answered = errCanceled
		delete(p.asked.open, id)
	}
}

// receiveMessage calls f with a message of the game, on the goroutine of the handlers. If it drops
// a reliable message, the session ends, because no message of that channel may be missing.
func (p *Player) receiveMessage(b []byte, a *arrival, f func(*Player, []byte)) {
	s, exceed := p.server, p.exceed
	if !a.reliable {
		exceed = func(string, ...any) {}
	}
	switch {
	case p.kicked.Load():
		p.drop(a.at, Kicked)
	case len(b) > MaxMessage:
		p.drop(a.at, Malformed)
		p.violate(fmt.Sprintf("a message of %d bytes, at most %d are permitted", len(b), MaxMessage))
	case !p.limits.sent.Take(a.since, message.DSMessages, message.MessageCost(len(b))):
		p.drop(a.at, RateLimited)
		exceed(messagesExceeded, message.DSMessages.PerSecond/1024)
	case f == nil:
		p.drop(a.at, UnknownRPC)
	case !s.cfg.Poll:
		s.guard(p, func() { f(p, b) })
	default:
		const overhead = 32 // bytes
		b = bytes.Clone(b)
		if !s.queue.push(&p.quota, overhead+len(b), call(func() {
			if p.kicked.Load() {
				p.countDrop(Kicked)
				return
			}
			s.guard(p, func() { f(p, b) })
		})) {
			p.drop(a.at, QueueFull)
			exceed(queueExceeded, s.cfg.Limits.QueueBytes)
		}
	}
}

// receiveReply handles the client's reply to the offer of a world. It returns false if the reply is
// malformed or answers no offer.
func (p *Player) receiveReply(b []byte, a *arrival) bool {
	worlds := p.streams.Load()
	world, why, offered, err := worlds.Explained(b)
	if err == nil && offered {
		err = worlds.HandleReply(b, &p.shard.initial, a.at)
	}
	switch {
	case err != nil:
		return false
	case why == nil:
	case why.Reason == message.ReasonNone:
		p.differ("world", world, why.Differences(), "server", "client")
	case p.mistake():
		text := message.Printable(why.Theirs, message.MaxTheirs)
		if !offered {
			text = fmt.Sprintf("not offered within %v%s", replication.OfferWait, message.Nearest(world, worlds.Offered()))
		}
		p.note(eventOf("world_refused", reasonError(why.Reason)), fmt.Sprintf("%.64q: %s", world, text), nil)
		p.server.cfg.Logger.Warn("world refused", "world", message.Printable(world, replication.MaxName), "reason", why.Reason.String(), "error", text, "player", p.ID())
	}
	return true
}

func (p *Player) receiveBind(body []byte, a *arrival) {
	r, err := message.ParseBindRequest(body)
	if err != nil {
		p.reject(a, Malformed, "malformed bind request")
		return
	}
	p.server.answer(p, &r)
}
