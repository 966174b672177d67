package inspect

import (
	"fmt"

	"github.com/uplink-rpc/uplink/capture/record"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
)

// told is what is said of one payload; nil where nobody asked.
type told struct {
	*Explained
	raw   payload
	parts *inspect.Explanation
	acks  ackState // before it came
}

// explaining begins with a payload, if it is to be explained.
func (p *player) explaining(s *stream, raw payload) *told {
	if p.waiting == nil || p.waiting.explain == nil {
		return nil
	}
	t := &told{Explained: p.waiting.explain, raw: raw, parts: &inspect.Explanation{}}
	if s != nil {
		t.acks, s.parts = s.acks, t.parts
	}
	t.header(s, raw)
	return t
}

// decoded explains what came of it.
func (t *told) decoded(s *stream, b *record.Decoded, frames []rpcdelta.Delivery, why, differs string) {
	if t == nil {
		return
	}
	h, err := inspect.ParseHeader(t.raw.b)
	if err != nil {
		return
	}
	t.note("the server got %d frames of it, the newest %d: %v", b.Frames, b.Seq, b.Kind)
	t.baseline(s, &h, b)
	t.ackState()
	switch {
	case differs != "":
		t.note("decoded again it is DIFFERENT: %s", differs)
	case why != "":
		t.note("it is not decoded again: %s", why)
	default:
		t.note("decoded again it came to the same, bit for bit")
	}
	if len(frames) != 0 && len(t.parts.Frames) != 0 {
		t.coded(s, &h, b.Seq)
	}
}

// baseline says what it was coded from, or why from nothing.
func (t *told) baseline(s *stream, h *inspect.Header, b *record.Decoded) {
	switch b.Kind {
	case rpcdelta.Delta:
		t.note("baseline: frame %d, %d frames before the newest", b.Seq-uint64(h.Distance), h.Distance)
	case rpcdelta.Keyframe:
		if t.acks.any && t.acks.last.Epoch == h.Epoch && !t.acks.last.None {
			t.note("full: an intra frame in epoch %d; frames were acked, so a difference would have been larger or nothing acked was near enough", h.Epoch)
			return
		}
		t.note("full: an intra frame; nothing of epoch %d was acked yet, so there was no baseline", h.Epoch)
	case rpcdelta.Reset:
		t.note("full: a reset, epoch %d begins: %s", h.Epoch, t.resetCause(s, b))
	}
}

func (t *told) resetCause(s *stream, b *record.Decoded) string {
	switch {
	case !t.acks.any && !s.bound.Again && b.Seq < 64:
		return "the stream's first payload that came"
	case t.acks.any && t.acks.last.ResetReason != nil:
		return "the server asked for it: " + resetText(t.acks.last.ResetReason)
	}
	return "the client could not know which frames the server has, since too much was unacked or acks left it open"
}

// ackState says what the client could know.
func (t *told) ackState() {
	if !t.acks.any {
		t.note("no ack of this RPC was sent before in this file")
		return
	}
	a := &t.acks.last
	if a.None {
		t.note("the last ack before was sent at %.3f s: nothing processed yet", t.acks.at.Seconds())
		return
	}
	t.note("the last ack before was sent at %.3f s: newest %d (low 16 bits), epoch %d, window of %d, reason for a reset: %s",
		t.acks.at.Seconds(), a.Seq, a.Epoch, a.Len, resetText(a.ResetReason))
}

// coded explains the coded part; newest is the sequence as the server counts.
func (t *told) coded(s *stream, h *inspect.Header, newest uint64) {
	x := t.parts
	at := h.Bits
	if s.cfg.Codec == rpcdelta.RLE {
		at = (at + 7) / 8 * 8
	}
	begin := 8*t.raw.offset + at
	bits := float64(8*len(t.raw.b) - at)
	if s.cfg.Codec == rpcdelta.Adaptive {
		t.add(begin, bits, 0, "coded part", "one stream of a range coder: parts have fractions of bits, and none a place")
		t.add(noBit, x.CountBits, 1, "number of frames", "%d", len(x.Frames))
	} else {
		t.add(begin, bits, 0, "coded part", "numbers, zeros up to a byte, and the run-length coded binary part")
	}
	place := newPlaces(s, begin)
	sum := x.CountBits
	for i := range x.Frames {
		if len(x.Frames) > 1 {
			t.add(noBit, 0, 1, fmt.Sprintf("frame %d", newest-uint64(len(x.Frames)-1-i)), "%s", reference(x, i, newest))
		}
		for f := range s.schema.Fields() {
			sum += t.field(s, i, f, place)
		}
	}
	if s.cfg.Codec == rpcdelta.RLE {
		t.add(noBit, bits-sum, 1, "rounding", "zeros between the numbers and the binary part")
		return
	}
	t.add(noBit, bits-sum, 1, "rounding", "to whole bytes, less zeros at the end that are left out")
}

func reference(x *inspect.Explanation, i int, newest uint64) string {
	switch {
	case i > 0:
		return "coded against the one before it"
	case x.Base != nil:
		return fmt.Sprintf("coded against the baseline, frame %d", newest-(x.Newest-x.BaseSeq))
	}
	return "coded alone"
}

// dropped explains why nothing came of it.
func (t *told) dropped(s *stream, b *record.Dropped, why, differs string) {
	if t == nil {
		return
	}
	where := "before it came to a decoder"
	if b.Decoder {
		where = "by the decoder"
	}
	t.note("the server dropped it, %s: %s", where, b.Reason)
	if s != nil {
		t.ackState()
	}
	switch {
	case differs != "":
		t.note("decoded again it is DIFFERENT: %s", differs)
	case why != "":
		t.note("it is not decoded again: %s", why)
	}
}
