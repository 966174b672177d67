package inspect

import (
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/record"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
)

// told contains the explanation of one payload. It is nil if the payload was not requested.
type told struct {
	*Explained
	raw   payload
	parts *inspect.Explanation
	acks  ackState // state of acks before the payload
}

// explaining starts to explain a payload, if requested.
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
	if !t.result(why, differs) {
		t.note("decoded again it came to the same, bit for bit")
	}
	if len(frames) != 0 && len(t.parts.Frames) != 0 {
		t.coded(s, &h, b.Seq)
	}
}

func (t *told) baseline(s *stream, h *inspect.Header, b *record.Decoded) {
	switch b.Kind {
	case rpcdelta.Delta:
		t.note("baseline: frame %d, %d frames before the newest", b.Seq-uint64(h.Distance), h.Distance)
	case rpcdelta.Keyframe:
		if t.acks.any && t.acks.last.Epoch == h.Epoch && !t.acks.last.None {
			t.note("keyframe: epoch %d has acked frames, but a delta would have been larger, or no acked frame was recent enough", h.Epoch)
			return
		}
		t.note("keyframe: no frame of epoch %d was acked yet, so there was no baseline", h.Epoch)
	case rpcdelta.Reset:
		t.note("reset: epoch %d starts: %s", h.Epoch, t.resetCause(s, b))
	}
}

func (t *told) resetCause(s *stream, b *record.Decoded) string {
	switch {
	case !t.acks.any && !s.bound.Again && b.Seq < 64:
		return "the first received payload of the stream"
	case t.acks.any && t.acks.last.ResetReason != nil:
		return "the server asked for it: " + resetText(t.acks.last.ResetReason)
	}
	return "the client could not know which frames the server has, since too much was unacked or acks left it open"
}

// ackState explains which frames the client could know to be acked.
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

// coded explains the coded part. newest is the server's sequence number.
func (t *told) coded(s *stream, h *inspect.Header, newest uint64) {
	x := t.parts
	at := h.Bits
	rounding := "to whole bytes, less zeros at the end that are left out"
	what := "one stream of a range coder: parts have fractions of bits, and none a place"
	if s.cfg.Codec == rpcdelta.RLE {
		at = (at + 7) / 8 * 8
		what = "numbers, zeros up to a byte, and the run-length coded binary part"
		rounding = "zeros between the numbers and the binary part"
	}
	begin := 8*t.raw.offset + at
	bits := float64(8*len(t.raw.b) - at)
	t.add(begin, bits, 0, "coded part", "%s", what)
	place := noBit // position of the next number of the codec rle, whose numbers follow each other bit by bit
	if s.cfg.Codec == rpcdelta.RLE {
		place = begin
	} else {
		t.add(noBit, x.CountBits, 1, "number of frames", "%d", len(x.Frames))
	}
	sum := x.CountBits
	for i := range x.Frames {
		if len(x.Frames) > 1 {
			t.add(noBit, 0, 1, fmt.Sprintf("frame %d", newest-uint64(len(x.Frames)-1-i)), "%s", reference(x, i, newest))
		}
		for f := range s.schema.Fields() {
			sum += t.field(s, i, f, &place)
		}
	}
	t.add(noBit, bits-sum, 1, "rounding", "%s", rounding)
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
	t.result(why, differs)
}

// result explains a difference, or why a payload is not decoded again. It reports whether either
// was passed.
func (t *told) result(why, differs string) bool {
	switch {
	case differs != "":
		t.note("decoded again it is DIFFERENT: %s", differs)
	case why != "":
		t.note("it is not decoded again: %s", why)
	}
	return differs != "" || why != ""
}

// header explains the header of a payload of a stream, which may be nil.
func (e *Explained) header(s *stream, raw payload) {
	if len(raw.b) == 0 {
		return
	}
	h, err := inspect.ParseHeader(raw.b)
	at := 8 * raw.offset
	if err != nil {
		e.add(at, float64(8*len(raw.b)), 0, "payload", "%v", err)
		return
	}
	name := ""
	if s != nil {
		name = fmt.Sprintf(" of %s, codec %v", s.name, s.cfg.Codec)
	}
	e.add(at, float64(8*len(raw.b)), 0, "payload"+name, "%d bytes", len(raw.b))
	form := "short"
	if h.Long {
		form = "long"
	}
	e.add(at, float64(h.Bits), 0, "header", "%s form", form)
	part := func(bits int, what, format string, args ...any) {
		e.add(at, float64(bits), 1, what, format, args...)
		at += bits
	}
	if h.Long {
		part(8, "form and flags", "long, has a baseline: %v, has a hash: %v", h.Distance != 0, h.Checked)
		part(8, "number of the RPC", "%d", h.RPC)
		part(16, "sequence, low 16 bits", "%d", h.Seq)
		if h.Distance != 0 {
			part(8, "distance to the baseline", "%d frames", h.Distance)
		} else {
			part(8, "epoch", "%d", h.Epoch)
		}
	} else {
		part(1, "form", "0, short")
		if h.Checked {
			part(6, "mark", "a hash follows")
		}
		part(rpcBits(h.RPC), "number of the RPC", "%d", h.RPC)
		part(5, "distance to the baseline", "%d frames", h.Distance)
		part(7, "sequence, low 7 bits", "%d", h.Seq)
	}
	if h.Checked {
		part(16, "hash of the baseline", "%04x", h.Hash)
	}
}

func rpcBits(rpc int) int {
	switch {
	case rpc == 0:
		return 1
	case rpc < 4:
		return 3
	}
	return 6
}

// acks explains the acks after the message's type.
func (e *Explained) acks(p *player, b []byte, at int) {
	for len(b) > 0 {
		a, rest, err := rpcdelta.ParseAck(b)
		if err != nil {
			e.note("%v", err)
			return
		}
		e.ack(p, &a, b[0]&1 != 0, at, len(b)-len(rest))
		at += 8 * (len(b) - len(rest))
		b = rest
	}
}

func (e *Explained) ack(p *player, a *rpcdelta.Ack, long bool, at, size int) {
	name := ""
	if s := p.streams[int(a.RPC)]; s != nil {
		name = " (" + s.name + ")"
	}
	e.add(at, float64(8*size), 0, "ack", "RPC %d%s", a.RPC, name)
	end := at + 8*size
	part := func(bits int, what, format string, args ...any) {
		e.add(at, float64(bits), 1, what, format, args...)
		at += bits
	}
	missing := a.Window != 1<<a.Len-1
	if long {
		numbers := a.RPC|a.Epoch != 0
		part(1, "form", "1, long")
		part(2, "reason for a reset", "%s", resetText(a.ResetReason))
		part(1, "nothing was processed yet", "%v", a.None)
		part(1, "whole", "%v", a.Whole)
		part(1, "gaps in the window", "%v", missing)
		part(1, "number of the RPC and epoch follow", "%v", numbers)
		part(1, "spare", "0")
		if numbers {
			part(8, "number of the RPC", "%d", a.RPC)
			part(8, "epoch", "%d", a.Epoch)
		}
		if !a.None {
			part(16, "newest processed payload", "%d", a.Seq)
			part(8, "length of the window", "%d", a.Len)
		}
	} else {
		part(1, "form", "0, short")
		part(3, "number of the RPC", "%d", a.RPC)
		part(3, "epoch", "%d", a.Epoch)
		part(1, "gaps in the window", "%v", missing)
		part(6, "length of the window", "%d", a.Len)
		part(10, "newest processed payload, low bits", "%d", a.Seq)
	}
	if missing {
		part(end-at, "window", "%s", windowText(a))
	} else if a.Len > 0 {
		e.note("the %d before it were processed, every one", a.Len)
	}
}

func resetText(reason error) string {
	switch {
	case reason == nil:
		return "none"
	case errors.Is(reason, rpcdelta.ErrBaselineMissing):
		return "a baseline is missing"
	}
	return "desync"
}

// windowText draws the window, newest first.
func windowText(a *rpcdelta.Ack) string {
	text := make([]byte, a.Len)
	for i := range text {
		text[i] = "-+"[a.Window>>i&1]
	}
	return fmt.Sprintf("%s: %d, %d and so on", text, a.Seq-1, a.Seq-2)
}

func (e *Explained) slack(p *player, b []byte) {
	all, acks, err := message.ParseSlack(nil, b)
	if err != nil {
		e.note("%v", err)
		return
	}
	e.add(8, 8, 0, "jitter buffers", "%d", len(all))
	size := (len(b) - len(acks) - 1) / len(all)
	at := 16
	for i := range all {
		s := &all[i]
		e.add(at, float64(8*size), 0, "jitter buffer", "RPC %d: slack %v of %v, %d ticks without a frame, %d frames late", s.RPC, s.Slack, s.Target, s.Missing, s.Late)
		at += 8 * size
	}
	e.acks(p, acks, at)
}
