package rpcdelta

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// profiler is a profile that receives costs from a codec. The zero value ignores them.
type profiler struct {
	*Profile
	format *packed.Format
}

// newProfiler returns a profiler that fills p, which may be nil. It panics if p is of another
// schema.
func newProfiler(p *Profile, f *packed.Format) profiler {
	same := func(a FieldProfile, b schema.Field) bool { return a.Name == b.Name && a.Kind == b.Kind }
	if p != nil && !slices.EqualFunc(p.Fields, f.Fields(), same) {
		panic("rpcdelta: Profile of another schema than " + f.RPC())
	}
	return profiler{p, f}
}

func (m *profiler) payload(c coder, in *payload, info *Info) {
	m.Payloads++
	m.Coded += uint64(len(in.Frames))
	m.HeaderBits += uint64(info.HeaderBits)
	m.PayloadBits += float64(info.PayloadBits)
	m.RoundingBits += float64(info.PayloadBits) - c.measure(in, m)
}

// frame adds a frame that was sent or delivered for the first time.
func (m *profiler) frame(f *schema.Frame) {
	m.Frames++
	for i := range m.Fields {
		n := uint64(m.format.FieldBits(i, f))
		m.Fields[i].FullBits += n
		m.FullBits += n
	}
}

// Frame, Count, Flags, Contents and Component implement [cost.Meter].
func (m *profiler) Frame(int) {}

func (m *profiler) Count(bits float64) { m.CountBits += bits }

func (m *profiler) Flags(field int, bits float64) {
	m.Fields[field].Bits += bits
	m.Fields[field].FlagBits += bits
}

func (m *profiler) Contents(field int, bits float64) { m.Fields[field].Bits += bits }

func (m *profiler) Component(field, k int, n float64, by cost.Predictor, residual int64) {
	f := &m.Fields[field]
	f.Bits += n
	c := &f.Components[k]
	c.Bits += n
	if by == cost.ByRest {
		c.Held++
		return
	}
	c.Predictors[by]++
	if residual != cost.NoResidual {
		c.Residuals[min(bits.Len64(uint64(max(residual, -residual))), len(c.Residuals)-1)]++
	}
}

// explain replaces e with an explanation of the payload that was just decoded. Nothing may have
// been learned since.
func explain(e *inspect.Explanation, s *schema.Schema, c coder, p *payload) {
	*e = inspect.Explanation{Newest: p.Newest}
	if p.HasBase {
		e.BaseSeq, e.Base = p.Base, s.NewFrame()
		e.Base.CopyFrom(&p.baseline)
	}
	for _, f := range p.Frames {
		c := s.NewFrame()
		c.CopyFrom(f)
		e.Frames = append(e.Frames, c)
	}
	c.measure(p, &explainer{Explanation: e, layouts: s.Layouts()})
}

// explainer fills an Explanation with the parts of a payload.
type explainer struct {
	*inspect.Explanation
	layouts []schema.Layout
	frame   int
}

// Frame, Count, Flags, Contents and Component implement [cost.Meter].
func (x *explainer) Frame(i int) { x.frame = i }

func (x *explainer) Count(bits float64) { x.CountBits += bits }

func (x *explainer) Flags(field int, bits float64) {
	x.Parts = append(x.Parts, inspect.Part{Kind: inspect.PartFlags, Frame: x.frame, Field: field, Bits: bits})
}

func (x *explainer) Contents(field int, bits float64) {
	x.Parts = append(x.Parts, inspect.Part{Kind: inspect.PartContents, Frame: x.frame, Field: field, Bits: bits})
}

func (x *explainer) Component(field, k int, bits float64, by cost.Predictor, residual int64) {
	l := &x.layouts[field]
	at := l.At + k
	if l.Class == schema.ClassQuat {
		at++
	}
	p := inspect.Part{
		Kind: inspect.PartComponent, Frame: x.frame, Field: field, Component: k, Bits: bits,
		Value: x.Frames[x.frame].Ints[at],
	}
	if p.Held = by == cost.ByRest; !p.Held {
		p.Predictor = int(by)
	}
	if residual != cost.NoResidual && !p.Held {
		p.Residual, p.Forecasts = residual, true
		p.Forecast = int64(p.Value) - residual
		if l.Class == schema.ClassAngle {
			p.Forecast &= int64(l.Hi)
		}
	}
	x.Parts = append(x.Parts, p)
}
