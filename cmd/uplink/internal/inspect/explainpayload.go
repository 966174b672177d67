package inspect

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// told is what is said of one payload; nil where nobody asked.
type told struct {
	*Explained
	raw   payload
	parts *rpcdelta.Explanation
	acks  ackState // before it came
}

// explaining begins with a payload, if it is to be explained.
func (p *player) explaining(s *stream, raw payload) *told {
	if p.waiting == nil || p.waiting.explain == nil {
		return nil
	}
	t := &told{Explained: p.waiting.explain, raw: raw, parts: &rpcdelta.Explanation{}}
	if s != nil {
		t.acks, s.parts = s.acks, t.parts
	}
	t.header(s, raw)
	return t
}

// header explains the header of a payload of a stream, which may be nil.
func (e *Explained) header(s *stream, raw payload) {
	if len(raw.b) == 0 {
		return
	}
	h, err := rpcdelta.ParseHeader(raw.b)
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
	if h.Long {
		e.longHeader(at, &h)
	} else {
		e.shortHeader(at, &h)
	}
}

func (e *Explained) shortHeader(at int, h *rpcdelta.Header) {
	e.add(at, 1, 1, "form", "0, short")
	at++
	if h.Checked {
		e.add(at, 6, 1, "mark", "a hash follows")
		at += 6
	}
	n := 6
	switch {
	case h.RPC == 0:
		n = 1
	case h.RPC < 4:
		n = 3
	}
	e.add(at, float64(n), 1, "number of the RPC", "%d", h.RPC)
	e.add(at+n, 5, 1, "distance to the baseline", "%d frames", h.Distance)
	e.add(at+n+5, 7, 1, "sequence, low 7 bits", "%d", h.Seq)
	if h.Checked {
		e.add(at+n+12, 16, 1, "hash of the baseline", "%04x", h.Hash)
	}
}

func (e *Explained) longHeader(at int, h *rpcdelta.Header) {
	base := h.Distance != 0
	e.add(at, 8, 1, "form and flags", "long, has a baseline: %v, has a hash: %v", base, h.Checked)
	e.add(at+8, 8, 1, "number of the RPC", "%d", h.RPC)
	e.add(at+16, 16, 1, "sequence, low 16 bits", "%d", h.Seq)
	if base {
		e.add(at+32, 8, 1, "distance to the baseline", "%d frames", h.Distance)
	} else {
		e.add(at+32, 8, 1, "epoch", "%d", h.Epoch)
	}
	if h.Checked {
		e.add(at+40, 16, 1, "hash of the baseline", "%04x", h.Hash)
	}
}

// decoded explains what came of it.
func (t *told) decoded(s *stream, b *capture.Decoded, frames []rpcdelta.Delivery, why, differs string) {
	if t == nil {
		return
	}
	h, err := rpcdelta.ParseHeader(t.raw.b)
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
func (t *told) baseline(s *stream, h *rpcdelta.Header, b *capture.Decoded) {
	switch b.Kind {
	case rpcdelta.Delta:
		t.note("baseline: frame %d, %d frames before the newest", b.Seq-uint64(h.Distance), h.Distance)
	case rpcdelta.Intra:
		if t.acks.any && t.acks.last.Epoch == h.Epoch && !t.acks.last.None {
			t.note("full: an intra frame in epoch %d; frames were acked, so a difference would have been larger or nothing acked was near enough", h.Epoch)
			return
		}
		t.note("full: an intra frame; nothing of epoch %d was acked yet, so there was no baseline", h.Epoch)
	case rpcdelta.Reset:
		t.note("full: a reset, epoch %d begins: %s", h.Epoch, t.resetCause(s, b))
	}
}

func (t *told) resetCause(s *stream, b *capture.Decoded) string {
	switch {
	case !t.acks.any && !s.bound.Again && b.Seq < 64:
		return "the stream's first payload that came"
	case t.acks.any && t.acks.last.Trouble != rpcdelta.NoTrouble:
		return "the server asked for it, trouble: " + troubleText(t.acks.last.Trouble)
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
	t.note("the last ack before was sent at %.3f s: newest %d (low 16 bits), epoch %d, window of %d, trouble: %s",
		t.acks.at.Seconds(), a.Seq, a.Epoch, a.Len, troubleText(a.Trouble))
}

// coded explains the coded part; newest is the sequence as the server counts.
func (t *told) coded(s *stream, h *rpcdelta.Header, newest uint64) {
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

func reference(x *rpcdelta.Explanation, i int, newest uint64) string {
	switch {
	case i > 0:
		return "coded against the one before it"
	case x.Base != nil:
		return fmt.Sprintf("coded against the baseline, frame %d", newest-(x.Newest-x.BaseSeq))
	}
	return "coded alone"
}

// field explains a field of frame i, and gives its bits.
func (t *told) field(s *stream, i, f int, place *places) (sum float64) {
	field := &s.schema.Fields()[f]
	flags, contents := 0., 0.
	var comps []rpcdelta.Part
	for _, part := range t.parts.Parts {
		if part.Frame != i || part.Field != f {
			continue
		}
		sum += part.Bits
		switch part.Kind {
		case rpcdelta.PartFlags:
			flags += part.Bits
		case rpcdelta.PartContents:
			contents += part.Bits
		case rpcdelta.PartComponent:
			comps = append(comps, part)
		}
	}
	frame := t.parts.Frames[i]
	t.add(place.next(field.Kind, sum), sum, 2, fmt.Sprintf("%s %v", field.Name, field.Kind), "%s", valueText(s.schema, frame, f))
	if flags > 0 {
		t.add(noBit, flags, 3, "flags", "%s", flagText(s, field, comps))
	}
	if contents > 0 {
		t.add(noBit, contents, 3, "contents", "")
	}
	if held(comps) {
		t.add(noBit, sum-flags, 3, "all components", "as the reference has them")
		return sum
	}
	for _, c := range comps {
		t.add(noBit, c.Bits, 3, fmt.Sprintf("component %d", c.Component), "%s", partText(&c))
	}
	return sum
}

func held(comps []rpcdelta.Part) bool {
	for _, c := range comps {
		if !c.Held {
			return false
		}
	}
	return len(comps) > 0
}

// flagText says what the bits of a field are that are no component's.
func flagText(s *stream, field *rpcdelta.Field, comps []rpcdelta.Part) string {
	alone := len(comps) > 0 && isAlone(&comps[0])
	text := "whether it changed"
	switch {
	case s.cfg.Codec == rpcdelta.RLE && field.Kind == rpcdelta.KindAngle && alone:
		text = "of each whether it is not zero"
	case s.cfg.Codec == rpcdelta.RLE && field.Kind == rpcdelta.KindQuat && alone:
		return "whether the index is the same, if there is a baseline; the index of the largest component"
	case s.cfg.Codec == rpcdelta.RLE, alone:
		text = "the width that its components share"
	case len(comps) > 1:
		text = "whether it changed, and which components"
	}
	if field.Kind == rpcdelta.KindQuat {
		text += ", the index of the largest component"
	}
	return text
}

func isAlone(c *rpcdelta.Part) bool {
	return !c.Held && !c.Forecasts && rpcdelta.PredictorName(c.Predictor) == "none"
}

func partText(c *rpcdelta.Part) string {
	switch {
	case c.Held:
		return fmt.Sprintf("%d, as the reference has it", c.Value)
	case c.Forecasts:
		return fmt.Sprintf("%d = forecast %d (%s) %+d", c.Value, c.Forecast, rpcdelta.PredictorName(c.Predictor), c.Residual)
	case isAlone(c):
		return fmt.Sprintf("%d, coded alone", c.Value)
	}
	return fmt.Sprintf("%d, coded by %s", c.Value, rpcdelta.PredictorName(c.Predictor))
}

// valueText is a field's value in its own unit.
func valueText(schema *rpcdelta.Schema, f *rpcdelta.Frame, i int) string {
	field := &schema.Fields()[i]
	if field.IsBytes() {
		b := schema.BytesOf(f, i)
		return clip(fmt.Sprintf("%d bytes %x", len(b), b))
	}
	var values []string
	switch field.Kind {
	case rpcdelta.KindInt:
		for k := range field.Values() {
			values = append(values, fmt.Sprint(schema.Int(f, i, k)))
		}
	case rpcdelta.KindUint, rpcdelta.KindBits, rpcdelta.KindBool:
		for k := range field.Values() {
			values = append(values, fmt.Sprint(schema.Uint(f, i, k)))
		}
	default:
		for _, v := range schema.RestoreField(nil, f, i) {
			values = append(values, fmt.Sprintf("%.6g", v))
		}
	}
	return clip(strings.Join(values, ", "))
}

// places tells where fields lie, with the codec rle: numbers one after the other, bit by bit.
type places struct{ at int }

func newPlaces(s *stream, begin int) *places {
	if s.cfg.Codec != rpcdelta.RLE {
		return &places{noBit}
	}
	return &places{begin}
}

// next is where a field of so many bits lies, or noBit.
func (p *places) next(k rpcdelta.Kind, bits float64) int {
	switch k {
	case rpcdelta.KindUint, rpcdelta.KindInt, rpcdelta.KindBits, rpcdelta.KindBool, rpcdelta.KindFixed, rpcdelta.KindBytes:
		return noBit
	default:
	}
	if p.at == noBit {
		return noBit
	}
	at := p.at
	p.at += int(bits)
	return at
}

// dropped explains why nothing came of it.
func (t *told) dropped(s *stream, b *capture.Dropped, why, differs string) {
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
