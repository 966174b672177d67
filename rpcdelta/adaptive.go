package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

// adaptiveCoder predicts and codes with an arithmetic coder; see
// docs/codec.md.
type adaptiveCoder struct {
	coder *adaptive.Coder
	state *adaptive.State
	taken history
	rows  []*adaptive.Row
	model *adaptive.Model
}

// history gives the codec the frames that were taken.
type history func(seq uint64) *Frame

// At implements adaptive.History.
func (h history) At(seq uint64) *adaptive.Row { return (*adaptive.Row)(h(seq)) }

func newAdaptive(s *Schema, ring int, taken func(seq uint64) *Frame) *adaptiveCoder {
	m := s.model()
	return &adaptiveCoder{
		coder: m.NewCoder(),
		state: m.NewState(ring),
		taken: taken,
		rows:  make([]*adaptive.Row, 0, MaxRedundancy+1),
		model: m,
	}
}

func (c *adaptiveCoder) take(n uint64)           { c.state.Take(n, c.taken) }
func (c *adaptiveCoder) reset()                  { c.state.Reset() }
func (c *adaptiveCoder) covers(base uint64) bool { return c.state.Covers(base) }
func (c *adaptiveCoder) hash(base uint64) uint16 { return c.state.Hash(base) }

func (c *adaptiveCoder) intraSize(f *Frame) int {
	return c.model.IntraBytes((*adaptive.Row)(f))
}

func (c *adaptiveCoder) fill(p *payload) {
	c.rows = c.rows[:0]
	for _, f := range p.frames {
		c.rows = append(c.rows, (*adaptive.Row)(f))
	}
}

func (c *adaptiveCoder) encode(dst []byte, p *payload) (out []byte, oldest int, ok bool) {
	c.fill(p)
	out = c.coder.Encode(dst, p.free, c.rows, p.place(), p.base, p.baseline != nil, c.state, c.taken)
	return out, c.coder.Oldest() / 8, true
}

func (c *adaptiveCoder) decode(p *payload, src []byte) error {
	c.fill(p)
	n, err := c.coder.Decode(c.rows, src, p.free, p.place(), p.base, p.baseline != nil, c.state, c.taken)
	if err != nil {
		return malformed("coded part: %v", err)
	}
	p.frames = p.frames[:n]
	return nil
}

// place is the sequence that the codec sees: without a baseline any will do, and
// a fresh decoder may not know how often the 16 bits have turned.
func (p *payload) place() uint64 {
	if p.baseline == nil {
		return MaxRedundancy
	}
	return p.newest
}

// newModel compiles the schema for the codec.
func (s *Schema) newModel() *adaptive.Model {
	fields := make([]adaptive.Field, len(s.plans))
	for i := range s.plans {
		fields[i] = s.modelField(&s.plans[i])
	}
	return adaptive.New(fields, s.rate)
}

func (s *Schema) modelField(p *plan) adaptive.Field {
	f := adaptive.Field{At: p.at, N: p.n, Lo: p.lo, Hi: p.hi, Bits: p.bits, VelocityAt: -1}
	switch p.class {
	case classGroup:
		f.Kind, f.Scalar = adaptive.Number, p.field.Kind == KindScalar
	case classAngle:
		f.Kind = adaptive.Angle
	case classQuat:
		f.Kind = adaptive.Quat
	case classBinary:
		f.Kind, f.Bits, f.Signed = adaptive.Integer, p.width, p.signed
		if k := p.field.Kind; k == KindBits || k == KindBool {
			f.Kind = adaptive.Bits
		}
	case classBlob:
		f.Kind, f.Blob, f.MinBytes, f.MaxBytes = adaptive.Bytes, p.blob, p.minBytes, p.maxBytes
	}
	for i := range s.plans {
		if v := &s.plans[i]; p.field.Velocity != "" && v.field.Name == p.field.Velocity {
			f.VelocityAt = v.at
			f.VelocityFactor = v.field.Resolution * p.field.VelocityScale
			if p.class == classGroup {
				f.VelocityFactor *= p.scale
			}
		}
	}
	return f
}
