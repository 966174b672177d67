package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
)

// ErrAck reports an ack that cannot be genuine: it refers to frames that were never sent, or to an
// epoch that the encoder did not open.
var ErrAck = errors.New("rpcdelta: impossible ack")

// Ack processes an ack of the decoder. Old and repeated acks have no effect, and neither has an ack
// for which it returns [ErrAck].
func (e *Encoder) Ack(a Ack) error {
	if a.None {
		e.handleReset(a)
		return nil
	}
	newest := e.next - 1
	behind := uint64(uint16(newest) - a.Seq)
	if e.next == 0 || behind > newest {
		return fmt.Errorf("%w: sequence %d of %d frames sent", ErrAck, a.Seq, e.next)
	}
	if a.Epoch != e.epoch {
		if (e.epoch-a.Epoch)&wire.EpochMask > wire.EpochSpan {
			return fmt.Errorf("%w: epoch %d in epoch %d", ErrAck, a.Epoch, e.epoch)
		}
		return nil // sent before the decoder was reset
	}
	n := newest - behind
	if r := e.sent.Get(n); r != nil && r.fresh == 0 {
		return fmt.Errorf("%w: no payload has sequence %d", ErrAck, a.Seq)
	}
	if n >= e.resolved {
		e.resolve(a, n)
	}
	e.handleReset(a)
	return nil
}

// resolve determines from an ack of payload n which payloads the decoder processed. It opens a new
// epoch if the state of the decoder cannot be known: if the window does not reach back to the
// payloads whose status is known, or if the ack covers the whole epoch but not the payloads acked
// before, because then the decoder was replaced.
func (e *Encoder) resolve(a Ack, n uint64) {
	from, span := e.resolved, uint64(a.Len)
	if !a.Whole && n-from > span || a.Whole && e.acked && n-from >= span {
		e.reset()
		return
	}
	if n-from > span {
		from = n - span
	}
	if e.next-from > e.kept {
		e.reset() // frames to learn from were evicted
		return
	}
	for q := from; q <= n; q++ {
		if e.sent.Get(q).fresh == 0 {
			continue // no payload has this sequence
		}
		processed := q == n || a.Window>>(n-q-1)&1 != 0
		if processed {
			e.process(q)
			e.stats.Processed++
		} else {
			e.stats.Lost++
		}
		e.losses.observe(!processed)
	}
	e.acked = true
	e.resolved = n + 1
}

// process repeats what the decoder did with payload n. It accepted each frame newer than all
// before, or only the newest frame of a payload that reset it.
func (e *Encoder) process(n uint64) {
	after := e.resolved
	if e.hasBase {
		after = e.base + 1
	}
	q := max(n-min(n, uint64(e.sent.Get(n).older)), after)
	e.stats.Missed += q - after
	e.stats.Delivered += n + 1 - q
	if !e.hasBase {
		q = n
	}
	for ; q <= n; q++ {
		e.accept(q)
	}
}

// accept records that the decoder accepted frame n.
func (e *Encoder) accept(n uint64) {
	f := e.sent.Get(n)
	e.base, e.hasBase = n, true
	e.coder.pass(n)
	e.known.Put(n, &f.Frame)
}

// handleReset resets the stream if the decoder requests it. Until a payload of the epoch is
// acked, every frame resets the decoder anyway.
func (e *Encoder) handleReset(a Ack) {
	if a.ResetReason != nil && e.acked {
		e.reset()
	}
}

// reset opens an epoch, in which frames have no baseline until one of them is acked. It is called
// only for an ack of the previous epoch, so the decoder is at most one epoch behind.
func (e *Encoder) reset() {
	e.epoch = (e.epoch + 1) & wire.EpochMask
	e.hasBase, e.acked = false, false
	e.resolved = e.next - uint64(e.held)
	e.coder.reset()
	e.known.Reset()
}

// DeliveryStats returns the statistics of the payloads and frames sent so far. They are zero on a
// reliable channel, which has no acks.
func (e *Encoder) DeliveryStats() DeliveryStats { return e.stats }
