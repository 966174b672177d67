package rpcdelta

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
)

// ErrAck says that an ack cannot be true: it speaks of frames that were never
// sent, or of an epoch that the encoder did not open.
var ErrAck = errors.New("rpcdelta: impossible ack")

// Ack takes the decoder's ack. Old ones and repeated ones do nothing. An ack
// that cannot be true is [ErrAck], and does nothing.
func (e *Encoder) Ack(a Ack) error {
	if a.None {
		e.answer(a)
		return nil
	}
	newest := e.next - 1
	behind := uint64(uint16(newest) - a.Seq)
	if e.next == 0 || behind > newest {
		return fmt.Errorf("%w: sequence %d of %d frames sent", ErrAck, a.Seq, e.next)
	}
	if a.Epoch != e.epoch {
		if (e.epoch-a.Epoch)&epochMask > epochSpan {
			return fmt.Errorf("%w: epoch %d in epoch %d", ErrAck, a.Epoch, e.epoch)
		}
		return nil // from before a reset arrived
	}
	n := newest - behind
	if r := e.sent.Get(n); r != nil && r.fresh == 0 {
		return fmt.Errorf("%w: no payload has the name %d", ErrAck, a.Seq)
	}
	if n >= e.resolved {
		e.resolve(a, n)
	}
	e.answer(a)
	return nil
}

// resolve learns from an ack of payload n what the decoder took. If the window
// does not reach back to what is known already, the decoder's state cannot be
// known either, and a new epoch begins; so it does if the ack is the whole of the
// epoch but not of what was acked before, since then the decoder is another one.
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
		e.reset() // the frames themselves are gone, or those to learn from with them
		return
	}
	for q := from; q <= n; q++ {
		if e.sent.Get(q).fresh == 0 {
			continue // no payload has that name
		}
		processed := q == n || a.Window>>(n-q-1)&1 != 0
		if processed {
			e.process(q)
			e.fates.Processed++
		} else {
			e.fates.Lost++
		}
		e.losses.observe(!processed)
	}
	e.acked = true
	e.resolved = n + 1
}

// process repeats what the decoder did with payload n: it took each frame that
// was newer than those before, or of a payload that resets the newest.
func (e *Encoder) process(n uint64) {
	after := e.resolved
	if e.hasBase {
		after = e.base + 1
	}
	q := max(n-min(n, uint64(e.sent.Get(n).older)), after)
	e.fates.Missed += q - after
	e.fates.Delivered += n + 1 - q
	if !e.hasBase {
		q = n
	}
	for ; q <= n; q++ {
		e.take(q)
	}
}

// take notes that the decoder took frame n.
func (e *Encoder) take(n uint64) {
	f := e.sent.Get(n)
	f.taken = true
	e.base, e.hasBase = n, true
	e.coder.pass(n)
	e.known.Put(n, (*adaptive.Row)(&f.Frame))
}

// answer resets for a decoder that lost its frames. Until something of the epoch
// was acked every frame is one that resets, so there is nothing to do.
func (e *Encoder) answer(a Ack) {
	if a.Trouble != NoTrouble && e.acked {
		e.reset()
	}
}

// reset opens an epoch: frames have no baseline until one of them is acked. It
// happens only on an ack of the epoch before, so the decoder is never more than
// one epoch behind.
func (e *Encoder) reset() {
	e.epoch = (e.epoch + 1) & epochMask
	e.hasBase, e.acked = false, false
	e.resolved = e.next - uint64(e.held)
	e.coder.reset()
	e.known.Reset()
	for s := e.next - min(e.next, uint64(e.sent.Cap())); s < e.next; s++ {
		e.sent.Get(s).taken = false
	}
}
