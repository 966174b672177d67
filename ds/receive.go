package ds

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

func (p *Player) receive(b []byte, at time.Time, reliable bool) {
	a := &p.shard.arrival
	a.at, a.since, a.reliable, a.coalesced, a.number = at, at.Sub(p.shard.start), reliable, false, p.conn.Number()
	p.handle(b, a)
}

// handle handles a message that was received, or was held before.
func (p *Player) handle(b []byte, a *arrival) {
	at, reliable := a.at, a.reliable
	t, body, err := control.Split(b)
	for ; t == control.DownAck && !reliable; t, body, err = control.Split(b) {
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
	case t == control.Frame:
		p.receivePayload(b, a)
	case t == control.Message && reliable:
		p.receiveMessage(body, a, p.server.cfg.OnMessage)
	case t == control.Message:
		p.receiveMessage(body, a, p.server.cfg.OnUnreliable)
	case t == control.Request && reliable:
		p.receiveRequest(body, a)
	case t == control.Bundle && !reliable:
		p.receiveBundle(body, a)
	case t == control.Reply && reliable:
		if !p.receiveReply(body, a) {
			p.reject(a, Malformed, "reply to no offer")
		}
	case t == control.Acks && !reliable:
		if !p.receiveAcks(body) {
			p.drop(at, InvalidAck)
		}
	case t == control.Bound && reliable:
		if answer, err := control.ParseBindAnswer(body); err != nil || !p.receiveAnswer(&answer) {
			p.reject(a, Malformed, "answer to no request to bind")
		}
	case t == control.Handover && reliable:
		p.receiveHandover(body, a)
	case t == control.Bind:
		r, err := control.ParseBindRequest(body)
		if err != nil {
			p.reject(a, Malformed, "malformed bind request")
			return
		}
		p.server.answer(p, &r)
	default:
		p.reject(a, Malformed, "unknown reliable message")
	}
}

// receiveDownAck handles the ack of a replication stream, and returns the message that follows it.
func (p *Player) receiveDownAck(b []byte, at time.Time) (message []byte) {
	ack, message := control.CutDownAck(b)
	err := p.streams.Load().HandleAck(ack, at)
	d := Malformed
	if errors.Is(err, replication.ErrInvalidAck) {
		d = InvalidAck
	}
	switch {
	case err == nil:
	case len(message) == 0:
		p.drop(at, d)
	default:
		p.countDrop(d) // the tap is told of the message
	}
	return message
}

func (p *Player) receiveBundle(b []byte, a *arrival) {
	for f := control.ParseBundle(b); f.Left() > 0; {
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
	b := p.binding(n)
	if b == nil || b.reliable != a.reliable {
		p.reject(a, UnknownRPC, "reliable frame of an RPC that is not bound")
		return
	}
	number := a.number
	if b.ambiguous(number) {
		p.dropPayload(b, a.at, Late, false)
		return
	}
	if !a.reliable && !p.decoded.Has(a.since, p.decoding, 0) {
		b.undecoded++
		p.dropPayload(b, a.at, RateLimited, false)
		return
	}
	frames, err := p.decode(b, payload)
	if !a.reliable { // there a payload has one frame
		p.decoded.Spend(a.since, p.decoding, float64(b.dec.Decoded()*b.frameSize))
	}
	p.noteAck(b)
	if err != nil {
		b.undecoded++
		p.dropPayload(b, a.at, reason(err), true)
		if a.reliable { // each frame refers to the one before: none after it can be decoded
			p.violate(malformedFrame)
		}
		return
	}
	if p.tap != nil {
		p.tap.Decoded(a.at, n, frames)
	}
	b.markRecovered(frames, number)
	b.newest, b.undecoded = max(b.newest, number), 0
	delivered := 0 // frames, which are moved to the front
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
	p.acks.Lock()
	defer p.acks.Unlock()
	return p.server.decode(b, payload)
}

// shortReach is the number of sequence numbers that the short header of a payload distinguishes.
const shortReach = 64

// ambiguous reports whether a datagram is so old that the sequence numbers in its payloads could be
// those of newer frames. Its own frames count too: the first of several payloads is that much older
// than the last, and one that is repeated is older still.
func (b *binding) ambiguous(number uint64) bool {
	return !b.reliable && number < b.newest && (b.newest-number+1)*b.frames+b.repairAge > shortReach
}

// markRecovered marks the frames of the payload in a datagram that a missing datagram contained
// before. The other new frames of the payload no longer count as redundant.
func (b *binding) markRecovered(frames []rpcdelta.Delivery, number uint64) {
	copies := b.copies(frames, number)
	for i := range frames[:copies] {
		frames[i].Recovered = true
	}
	frames[len(frames)-1].Redundant += copies + 1 - len(frames)
}

// copies returns how many frames of the payload in a datagram the missing datagrams contained at
// least, if each of them had a frame of this RPC. They are the oldest ones. Without missing
// datagrams there are none, since they would have been delivered before.
func (b *binding) copies(frames []rpcdelta.Delivery, number uint64) int {
	n := len(frames)
	switch {
	case b.reliable || number < b.newest: // out of order
		return 0
	case frames[0].Late: // the payload was sent again
		return n
	case number == b.newest || n == 1:
		return 0
	}
	missing := b.undecoded
	if number > b.newest+1 {
		missing += b.player.conn.Missing(b.newest+1, number-1)
	}
	if missing == 0 {
		return 0
	}
	// Each missing datagram had at least one new frame, and this one at most batch.
	missed, batch := int(frames[0].Missed), b.batch
	switch all := frames[n-1].Redundant + 1; {
	case missed != 0:
		batch = int(b.frames) // loss can be congestion
	case all == n && all <= batch: // it may have no copies, and no missing datagram a frame of this RPC
		return 0
	}
	return max(n-batch, min(missing-missed, n-1), 0)
}

// endUndelivered ends the session because a reliable frame was dropped.
func (p *Player) endUndelivered(b *binding, d Drop) {
	switch d {
	case QueueFull:
		p.exceed(queueExceeded, p.server.cfg.QueueBytes)
	case RateLimited:
		p.exceed("more than %v calls a second of an RPC bound at %v: %s", b.rate.PerSecond, b.hz, b.rpc.schema.RPC())
	default:
		p.violate(malformedFrame)
	}
}

const messagesExceeded = "messages of more than %v KiB a second"

const queueExceeded = "the calls for Poll exceed QueueBytes, %d"

// deliver delivers a frame. It returns the number of frames before it that are newly known to be
// missed. If the frame is dropped, it counts that.
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

// count counts the delivered frames of a payload, and the payload unless size is 0: then it was not
// used to its end.
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
