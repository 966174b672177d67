package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// adaptiveCoder is the codec that predicts components and codes residuals with a range coder; see
// docs/codec.md.
type adaptiveCoder struct {
	coder       *adaptive.Coder
	known       *adaptive.Frames // accepted frames
	model       *adaptive.Model
	state       *adaptive.State // at the newest baseline
	checkpoints *checkpoints    // earlier states; nil if late payloads are not decoded
	using       *adaptive.State // state of the current payload: state, or a checkpoint
	rows        [MaxRedundancy + 1]*adaptive.Row
	payload     adaptive.Payload // view of the current payload, in rows
}

// newAdaptive returns a coder for frames that refer to the last ring frames in known. late selects
// whether payloads can be decoded whose baseline is older than the state.
func newAdaptive(s *format, prior *Prior, ring int, known *adaptive.Frames, coder *adaptive.Coder, late bool) *adaptiveCoder {
	m := s.model(prior)
	c := &adaptiveCoder{coder: coder, known: known, model: m, state: m.NewState(ring)}
	if late {
		c.checkpoints = newCheckpoints(m, ring)
	}
	c.using = c.state
	return c
}

func (c *adaptiveCoder) learn(base uint64) bool {
	if c.checkpoints != nil {
		c.checkpoints.save(c.state, base)
	}
	if c.using = c.state; c.state.Learn(base, c.known) {
		return true
	}
	if c.checkpoints == nil {
		return false
	}
	s := c.checkpoints.restore(base, c.known)
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
	if c.checkpoints != nil {
		c.checkpoints.reset()
	}
}

func (c *adaptiveCoder) hash() uint16 { return c.using.Hash() }

func (c *adaptiveCoder) leastIntra(f *schema.Frame) int {
	return c.model.MinKeyframeBytes((*adaptive.Row)(f))
}

func (c *adaptiveCoder) intraSize(f *schema.Frame) int {
	return c.model.KeyframeBytes((*adaptive.Row)(f))
}

// fill sets up the view of p that the codec reads and writes.
func (c *adaptiveCoder) fill(p *payload) *adaptive.Payload {
	for i, f := range p.frames {
		c.rows[i] = (*adaptive.Row)(f)
	}
	c.payload = adaptive.Payload{
		Rows: c.rows[:len(p.frames)], Newest: p.newest, Base: p.base, HasBase: p.hasBase, FreeBits: p.free,
	}
	if !p.hasBase {
		// A keyframe does not depend on its sequence number, and a new decoder knows only the low
		// 16 bits of it.
		c.payload.Newest = MaxRedundancy
	}
	return &c.payload
}

func (c *adaptiveCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	out = c.coder.Encode(dst, c.fill(p), c.using, c.known)
	return out, c.coder.OldestBits() / 8, true
}

func (c *adaptiveCoder) decode(p *payload, src []byte) error {
	if err := c.coder.Decode(src, c.fill(p), c.using, c.known); err != nil {
		return malformed("coded part: %v", err)
	}
	p.frames = p.frames[:len(c.payload.Rows)]
	return nil
}

func (c *adaptiveCoder) measure(p *payload, m adaptive.Meter) (bits float64) {
	return c.coder.Measure(m, c.fill(p), c.using, c.known)
}

// modelFields describes the schema for package adaptive.
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
