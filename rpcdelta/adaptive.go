package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// adaptiveCoder predicts and codes with an arithmetic coder; see
// docs/codec.md.
type adaptiveCoder struct {
	coder *adaptive.Coder
	known *adaptive.Frames // that were taken
	model *adaptive.Model
	state *adaptive.State // up to the newest baseline
	late  *past           // states before that; nil where no late payload is decoded
	using *adaptive.State // one of these
	rows  [MaxRedundancy + 1]*adaptive.Row
}

// newAdaptive makes a coder of frames that refer to the last ring frames of
// known. Late payloads are those whose baseline is older than what was learned.
func newAdaptive(s *format, prior *Prior, ring int, known *adaptive.Frames, coder *adaptive.Coder, late bool) *adaptiveCoder {
	m := s.model(prior)
	c := &adaptiveCoder{coder: coder, known: known, model: m, state: m.NewState(ring)}
	if late {
		c.late = newPast(m, ring)
	}
	c.using = c.state
	return c
}

func (c *adaptiveCoder) learn(base uint64) bool {
	if c.late != nil {
		c.late.keep(c.state, base)
	}
	if c.using = c.state; c.state.Learn(base, c.known) {
		return true
	}
	if c.late == nil {
		return false
	}
	s := c.late.at(base, c.known)
	if s == nil {
		return false
	}
	c.using = s
	return true
}

func (c *adaptiveCoder) pass(n uint64) {
	if keep := uint64(c.known.Cap() - adaptive.LearnReach); n >= keep {
		c.state.Learn(n-keep, c.known)
	}
}

func (c *adaptiveCoder) reset() {
	c.state.Reset()
	if c.late != nil {
		c.late.reset()
	}
}

func (c *adaptiveCoder) hash() uint16 { return c.using.Hash() }

func (c *adaptiveCoder) leastIntra(f *schema.Frame) int {
	return c.model.LeastIntra((*adaptive.Row)(f))
}

func (c *adaptiveCoder) intraSize(f *schema.Frame) int {
	return c.model.IntraBytes((*adaptive.Row)(f))
}

func (c *adaptiveCoder) fill(p *payload) []*adaptive.Row {
	for i, f := range p.frames {
		c.rows[i] = (*adaptive.Row)(f)
	}
	return c.rows[:len(p.frames)]
}

func (c *adaptiveCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	out = c.coder.Encode(dst, p.free, c.fill(p), p.place(), p.base, p.hasBase, c.using, c.known)
	return out, c.coder.Oldest() / 8, true
}

func (c *adaptiveCoder) decode(p *payload, src []byte) error {
	n, err := c.coder.Decode(c.fill(p), src, p.free, p.place(), p.base, p.hasBase, c.using, c.known)
	if err != nil {
		return malformed("coded part: %v", err)
	}
	p.frames = p.frames[:n]
	return nil
}

func (c *adaptiveCoder) measure(p *payload, m adaptive.Meter) (bits float64) {
	return c.coder.Measure(m, p.free, c.fill(p), p.place(), p.base, p.hasBase, c.using, c.known)
}

// place is the sequence that the codec sees: without a baseline any will do, and
// a fresh decoder may not know how often the 16 bits have turned.
func (p *payload) place() uint64 {
	if !p.hasBase {
		return MaxRedundancy
	}
	return p.newest
}

// modelFields describes the schema for the codec.
func (s *format) modelFields() []adaptive.Field {
	fields := make([]adaptive.Field, len(s.plans))
	for i := range s.plans {
		fields[i] = s.modelField(&s.plans[i])
	}
	return fields
}

func (s *format) modelField(p *plan) adaptive.Field {
	f := adaptive.Field{At: p.At, N: p.N, Lo: p.Lo, Hi: p.Hi, Bits: p.Bits, VelocityAt: -1, Key: s.priorKey(p.Field)}
	switch p.Class {
	case schema.ClassNumber:
		f.Kind, f.Scalar = adaptive.Number, p.Field.Kind == schema.KindScalar
	case schema.ClassAngle:
		f.Kind = adaptive.Angle
	case schema.ClassQuat:
		f.Kind = adaptive.Quat
	case schema.ClassInteger:
		f.Kind, f.Bits, f.Signed = adaptive.Integer, p.Width, p.Signed
		if k := p.Field.Kind; k == schema.KindBits || k == schema.KindBool {
			f.Kind = adaptive.Bits
		}
	case schema.ClassBytes:
		f.Kind, f.Blob, f.MinBytes, f.MaxBytes = adaptive.Bytes, p.Blob, p.MinBytes, p.MaxBytes
	}
	for i := range s.plans {
		if v := &s.plans[i]; p.Field.Velocity != "" && v.Field.Name == p.Field.Velocity {
			f.VelocityAt = v.At
			f.VelocityFactor = v.Field.Resolution * p.Field.VelocityScale
			if p.Class == schema.ClassNumber {
				f.VelocityFactor *= p.Scale
			}
		}
	}
	return f
}
