package rpcdelta

import (
	"fmt"
	"iter"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
	"github.com/uplink-rpc/uplink/schema"
)

// ackTracker holds the frames that an encoder sent, and follows from acks which of them the decoder
// accepted. The coder learns from these.
type ackTracker struct {
	coder      coder
	sent       *ringcache.Ring[sentFrame]
	known      *adaptive.Frames // of these, the frames that the decoder accepted in this epoch
	reach      uint64           // maximum age of a frame that another refers to
	batch      int              // EncoderConfig.MaxBatchDelay
	deadline   int              // EncoderConfig.Deadline
	maxAge     int              // maximum age of a redundant frame
	kept       uint64           // maximum age of a payload when its delivery status becomes known
	redundancy *redundancy
	repair     repair
	stats      DeliveryStats

	next     uint64 // sequence of the next frame
	held     int    // frames before it that no payload contains yet
	base     uint64 // newest frame that the decoder accepted
	hasBase  bool
	epoch    uint8
	opened   uint64 // first payload of the epoch
	resolved uint64 // the delivery status of all payloads below this one is known
	acked    bool   // a payload was acked in this epoch
}

// sentFrame is a frame that was sent or is held back.
type sentFrame struct {
	schema.Frame
	older uint8 // frames before this one in the payload with this sequence
	fresh uint8 // those of its frames that no payload contained before; 0: there is no such payload

	planned   uint8 // payloads that are to contain the frame
	early     uint8 // those of them that do not wait until an ack is overdue
	must      uint8 // those of them for which held frames leave before their time
	payloads  uint8 // payloads sent since it was held that could contain it
	delivered bool  // a payload with the frame was acked
	repaired  bool  // the payload with this sequence was sent again
}

// shape returns the shape of the payload with the sequence of f.
func (f *sentFrame) shape() adaptive.Shape {
	return adaptive.Shape{Frames: f.older + 1, Repeats: f.older >= f.fresh}
}

func (t *ackTracker) put(f *schema.Frame) {
	t.expire()
	slot := t.sent.Put(t.next)
	slot.CopyFrom(f)
	slot.older, slot.fresh = 0, 0
	slot.planned, slot.must = t.redundancy.payloads()
	slot.payloads = 0
	slot.delivered, slot.repaired = false, false
	slot.early = slot.planned
	if slot.planned != everyPayload {
		slot.early = uint8(max(1, int(slot.planned)-t.repairs()))
	}
	t.next++
}

// expire accounts for the planned payloads that did not leave in time with the frame that the next
// payload cannot repeat any more.
func (t *ackTracker) expire() {
	if t.deadline == 0 || t.next < uint64(t.maxAge)+1 {
		return
	}
	q := t.next - uint64(t.maxAge) - 1
	if f := t.sent.Get(q); f.early == f.planned && f.payloads < f.planned && (!t.hasBase || q > t.base) {
		t.redundancy.contained(int(f.payloads), int(f.planned))
	}
}

func (t *ackTracker) baseline() (schema.Frame, bool) {
	if !t.hasBase || t.next-t.base > t.reach || !t.coder.learn(t.base) {
		return schema.Frame{}, false
	}
	return t.known.Get(t.base)
}

// older returns the maximum number of older frames in payload n: those that no payload contained
// yet, and those of which more copies are planned, with all between them.
func (t *ackTracker) older(n uint64, fresh int) int {
	older := fresh - 1
	for q := range t.repeatable(n) {
		if f := t.sent.Get(q); f.payloads < t.redundancy.limited(f.early) {
			older = max(older, int(n-q))
		}
	}
	return min(older, t.olderLimit(n))
}

// olderLimit returns the maximum number of older frames that the decoder can use: it has the
// baseline and all frames before it, and a new decoder only knows the low 16 bits of the sequence.
func (t *ackTracker) olderLimit(n uint64) int {
	if t.hasBase {
		return int(n - t.base - 1)
	}
	return int(uint16(n))
}

// repeatable yields the frames before frame n that its payload may repeat, newest first.
func (t *ackTracker) repeatable(n uint64) iter.Seq[uint64] {
	most := uint64(min(t.maxAge, t.olderLimit(n)))
	return func(yield func(uint64) bool) {
		for q := n - 1; n-q <= most; q-- {
			if !yield(q) {
				return
			}
		}
	}
}

// kind returns the kind that the decoder will most likely assign to a frame with this distance to
// its baseline. Until a payload of an epoch is acked, each of its frames may be the one that resets
// the decoder.
func (t *ackTracker) kind(distance int) FrameKind {
	switch {
	case distance != 0:
		return Delta
	case t.acked:
		return Keyframe
	}
	return Reset
}

func (t *ackTracker) ack(a Ack) error {
	if a.None {
		t.handleReset(a)
		return nil
	}
	w := a.wire()
	newest := t.next - 1
	if w.Width() < 16 {
		// The window of such an ack begins after a baseline that the encoder used. So an ack that
		// is new acks one of the next payloads, however long no other ack arrived.
		newest = min(newest, t.resolved+ackWindow-1)
	}
	behind := w.Behind(newest)
	if t.next == 0 || behind > newest {
		return fmt.Errorf("%w: sequence %d of %d frames sent", ErrAck, a.Seq, t.next)
	}
	if a.Epoch != t.epoch {
		if (t.epoch-a.Epoch)&wire.EpochMask > wire.EpochSpan {
			return fmt.Errorf("%w: epoch %d in epoch %d", ErrAck, a.Epoch, t.epoch)
		}
		return nil // sent before the decoder was reset
	}
	n := newest - behind
	f := t.sent.Get(n)
	if f != nil && f.fresh == 0 {
		return fmt.Errorf("%w: no payload has sequence %d", ErrAck, a.Seq)
	}
	if n >= t.resolved {
		if f != nil && !f.repaired {
			t.repair.acks.observe(int(behind))
		}
		t.resolve(a, n)
	}
	t.handleReset(a)
	return nil
}

// resolve determines from an ack of payload n which payloads the decoder processed. It opens a new
// epoch if the state of the decoder cannot be known: if the window does not reach back to the
// payloads whose status is known, or if the ack covers the whole epoch but not the payloads acked
// before, because then the decoder was replaced.
func (t *ackTracker) resolve(a Ack, n uint64) {
	span := uint64(a.Len)
	unknown := n - t.resolved
	from := n - min(unknown, span)
	evicted := t.next-from > t.kept // frames to learn from
	if !a.Whole && unknown > span || a.Whole && t.acked && unknown >= span || evicted {
		t.reset()
		return
	}
	newest := t.next - 1
	window := seq.Window{Any: true, Newest: n, Bits: a.Window}
	for q := from; q <= n; q++ {
		if t.sent.Get(q).fresh == 0 {
			continue // no payload has this sequence
		}
		processed := window.Has(q)
		if processed {
			t.process(q)
			t.repair.acks.resolve(int(newest - q))
			t.stats.Processed++
		} else {
			t.stats.Lost++
		}
		t.redundancy.loss.observe(!processed)
	}
	t.redundancy.replan()
	t.acked = true
	t.resolved = n + 1
}

// process repeats the decoder's processing of payload n. It accepted each frame newer than all
// before, or only the newest frame of a payload that reset it.
func (t *ackTracker) process(n uint64) {
	after := t.resolved
	if t.hasBase {
		after = t.base + 1
	}
	q := max(n-min(n, uint64(t.sent.Get(n).older)), after)
	t.stats.Missed += q - after
	t.stats.Delivered += n + 1 - q
	if !t.hasBase {
		q = n
	}
	for ; q < n; q++ {
		t.accept(q, adaptive.Shape{})
	}
	t.accept(n, t.sent.Get(n).shape())
}

// accept records that the decoder accepted frame n, and the shape of the payload whose newest frame
// it is.
func (t *ackTracker) accept(n uint64, s adaptive.Shape) {
	t.base, t.hasBase = n, true
	t.sent.Get(n).delivered = true
	t.coder.pass(n)
	t.known.Put(n, &t.sent.Get(n).Frame, s)
}

// handleReset resets the stream if the decoder requests it. Until a payload of the epoch is acked,
// every frame resets the decoder anyway.
func (t *ackTracker) handleReset(a Ack) {
	if a.ResetReason != nil && t.acked {
		t.reset()
	}
}

// reset opens an epoch, in which frames have no baseline until one of them is acked. It is called
// only for an ack of the previous epoch, so the decoder is at most one epoch behind.
func (t *ackTracker) reset() {
	t.epoch = (t.epoch + 1) & wire.EpochMask
	t.hasBase, t.acked = false, false
	t.resolved = t.next - uint64(t.held)
	t.opened = t.resolved
	t.coder.reset()
	t.known.Reset()
}

// repairs returns how many times a payload can be repeated by the deadline of all its frames after
// its ack did not arrive. It is 0 while acks do not show losses, and while no payload of the last
// two deadlines was acked, because nothing arrives then.
func (t *ackTracker) repairs() int {
	a := &t.repair.acks
	silent := t.next-t.resolved > 2*uint64(t.deadline)
	if t.repair.payloads == nil || t.redundancy.setting != RedundancyAuto || a.periods == 0 || a.prompt < promptShare || silent {
		return 0
	}
	return max(0, min(t.deadline, MaxRepairAge)-t.batch-a.usual())
}

// overdue returns how many more times payload n is to be repeated because it is lost or its ack is
// overdue, and the number of ticks after this one in which that helps all frames that only this
// payload brings. Only frames before the given one count.
func (t *ackTracker) overdue(n, before uint64) (copies, left int) {
	f := t.sent.Get(n)
	if f == nil || f.fresh == 0 || t.repair.payloads.Get(n) == nil || n >= t.resolved && int(t.next-1-n) <= t.repair.acks.usual() {
		return 0, 0
	}
	left = t.deadline
	for q := n + 1 - uint64(f.fresh); q <= n && q < before; q++ {
		f, age := t.sent.Get(q), int(t.next-1-q)
		planned := t.redundancy.limited(f.planned)
		if f.delivered || f.payloads >= planned || age > t.deadline {
			continue
		}
		copies = max(copies, int(planned-f.payloads))
		left = min(left, t.deadline-age)
	}
	return copies, left
}

// repairable returns the oldest payload that may be repeated.
func (t *ackTracker) repairable() uint64 {
	age := uint64(min(t.deadline, MaxRepairAge))
	return max(t.opened, t.next-1-min(age, t.next-1))
}

// repairIsDue reports whether a payload has to be repeated in this tick, because it could otherwise
// not be repeated as often as planned.
func (t *ackTracker) repairIsDue() bool {
	if t.repairs() == 0 {
		return false
	}
	for n := t.repairable(); n < t.next; n++ {
		if copies, left := t.overdue(n, t.next); copies > left {
			return true
		}
	}
	return false
}
