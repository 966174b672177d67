package rpcdelta

import (
	"fmt"
	"iter"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/ringcache"
)

// ackTracker holds the frames that an encoder sent and derives from acks which of them the decoder
// accepted. The coder learns from the accepted frames.
type ackTracker struct {
	coder      coder
	sent       *ringcache.Ring[sentFrame]
	known      *adaptive.Frames // subset of the sent frames that the decoder accepted in this epoch
	reach      uint64           // maximum distance from a frame to its reference
	batch      int              // EncoderConfig.MaxBatchDelay
	deadline   int              // EncoderConfig.Deadline
	maxAge     int              // maximum age of a redundant frame
	kept       uint64           // maximum age of a payload whose delivery status can still become known
	redundancy *redundancy
	repair     repair
	stats      DeliveryStats

	next     uint64 // sequence of the next frame
	held     int    // newest frames that no payload contains yet
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
	older uint8 // number of frames before this one in the payload with this sequence
	fresh uint8 // new frames in the payload with this sequence; 0: no payload has it

	planned   uint8 // number of payloads planned to contain the frame
	early     uint8 // planned payloads that are sent before an ack is overdue
	must      uint8 // planned payloads for which held frames are sent early
	payloads  uint8 // payloads sent since the frame was held that had room for it
	delivered bool  // a payload with the frame was acked
	repaired  bool  // the payload with this sequence was sent again
}

// shape returns the shape of the payload whose newest frame is f.
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

// expire adjusts the redundancy for the frame that payloads can no longer repeat from now on, if
// fewer payloads than planned contain it.
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

// older returns the maximum number of older frames in payload n: from the oldest frame that no
// payload contains yet, or that has planned copies left, to the newest.
func (t *ackTracker) older(n uint64, fresh int) int {
	older := fresh - 1
	for q := range t.repeatable(n) {
		if f := t.sent.Get(q); f.payloads < t.redundancy.limited(f.early) {
			older = max(older, int(n-q))
		}
	}
	return min(older, t.olderLimit(n))
}

// olderLimit returns the maximum number of older frames that the decoder can use: frames up to the
// baseline are known to it, and a new decoder knows only the low 16 bits of the sequence.
func (t *ackTracker) olderLimit(n uint64) int {
	if t.hasBase {
		return int(n - t.base - 1)
	}
	return int(uint16(n))
}

// repeatable yields the frames before frame n that payload n may repeat, newest first.
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

// kind returns the kind that the decoder will most likely assign to a frame at this distance from
// its baseline. Until a payload of an epoch is acked, any of its frames may be the one that resets
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
		// The window of a genuine ack begins after a baseline that the encoder used. So a new ack
		// refers to one of the next ackWindow payloads, even after a long time without acks.
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
// epoch if the state of the decoder is unknown. This is the case if the window does not reach back
// to the payloads with a known status. It is also the case if the ack covers the whole epoch but
// omits payloads that were acked before: the decoder was replaced.
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

// process repeats the decoder's processing of payload n. The decoder accepted each frame newer than
// all before it or, if the payload reset it, only the newest frame.
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

// accept records that the decoder accepted frame n. s is the shape of the payload whose newest
// frame is n.
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

// repairs returns the number of times that a payload can be repeated before the deadline of its
// frames, after its ack has failed to arrive. It is 0 while acks are too unreliable to reveal
// losses, and while no payload of the last two deadlines was acked, because the path is then
// interrupted.
func (t *ackTracker) repairs() int {
	a := &t.repair.acks
	silent := t.next-t.resolved > 2*uint64(t.deadline)
	if t.repair.payloads == nil || t.redundancy.setting != RedundancyAuto || a.periods == 0 || a.prompt < promptShare || silent {
		return 0
	}
	return max(0, min(t.deadline, MaxRepairAge)-t.batch-a.usual())
}

// overdue returns the number of further times to repeat payload n, because it is lost or its ack is
// overdue. left is the number of later ticks in which a repetition still meets the deadline of all
// frames that only this payload contains. Frames with a sequence of before or higher are ignored.
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

// repairIsDue reports whether a payload must be repeated in this tick, because later ticks leave
// too few opportunities for the planned repetitions.
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
