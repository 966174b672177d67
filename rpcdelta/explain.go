package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Header is what stands ahead of a payload's coded part, as it can be read without the stream.
type Header struct {
	// RPC is the number of the RPC, Long says which form the header has, Bits how many it takes.
	RPC  int
	Long bool
	Bits int
	// Seq is the low bits of the sequence, 7 in a short header, 16 in a long one.
	Seq uint16
	// Distance is how far before that the baseline is; 0 if there is none, and then Epoch says which it is of.
	Distance int
	Epoch    uint8
	// Checked says that there is a Hash of the baseline and what was learned.
	Checked bool
	Hash    uint16
}

// ParseHeader reads the header of a payload.
func ParseHeader(payload []byte) (Header, error) {
	h, err := parseHeader(payload)
	if err != nil {
		return Header{}, err
	}
	return Header{
		RPC: int(h.rpc), Long: h.long, Bits: h.bits(), Seq: h.seq, Distance: h.distance, Epoch: h.epoch, Checked: h.checked, Hash: h.hash,
	}, nil
}

// Explanation says what each part of one payload stands for; see [Decoder.Explain]. It is for people: filling it
// allocates.
type Explanation struct {
	// Frames are those of the payload, the oldest first, Newest is the sequence of the last. Base is the baseline,
	// with sequence BaseSeq; nil if there is none.
	Newest, BaseSeq uint64
	Frames          []*schema.Frame
	Base            *schema.Frame
	// CountBits say how many frames there are; Parts are in the order in which they are coded.
	CountBits float64
	Parts     []Part
}

// PartKind says what a Part is of.
type PartKind uint8

// The kinds of parts.
const (
	// PartFlags is what belongs to no component: whether something changed, a common length, the index of a quat.
	PartFlags PartKind = iota
	// PartComponent is a component.
	PartComponent
	// PartContents is a byte string.
	PartContents
)

// Part is one part of a payload.
type Part struct {
	Kind PartKind
	// Frame is the index of its frame, Field that of its field in the schema, Component its place in the field, not
	// counting the index of a quat.
	Frame, Field, Component int
	// Bits are what it takes, in fractions.
	Bits float64
	// Of a component: its Value; what it was coded from, see [PredictorName], unless it is Held where its reference
	// is; and, if it has a Residual, what was Forecast.
	Value     int32
	Predictor int
	Held      bool
	Residual  int64
	Forecast  int64
	Forecasts bool
}

// Explain has the next payload that is taken explained in e, and what e held replaced; nil stops it. A payload that is
// dropped leaves e alone.
func (d *Decoder) Explain(e *Explanation) { d.explanation = e }

// explain explains the payload that was just decoded; nothing may have been learned since.
func (d *Decoder) explain() {
	p := &d.scratch.payload
	*d.explanation = Explanation{Newest: p.newest}
	if p.hasBase {
		d.explanation.BaseSeq, d.explanation.Base = p.base, d.format.NewFrame()
		d.explanation.Base.CopyFrom(&p.baseline)
	}
	for _, f := range p.frames {
		c := d.format.NewFrame()
		c.CopyFrom(f)
		d.explanation.Frames = append(d.explanation.Frames, c)
	}
	x := explainer{Explanation: d.explanation, s: d.format}
	d.coder.measure(p, &x)
	d.explanation = nil
}

// explainer is an Explanation as codecs fill it.
type explainer struct {
	*Explanation
	s     *format
	frame int
}

var _ adaptive.Meter = (*explainer)(nil)

func (x *explainer) Row(i int)          { x.frame = i }
func (x *explainer) Count(bits float64) { x.CountBits += bits }

func (x *explainer) Flags(field int, bits float64) {
	x.Parts = append(x.Parts, Part{Kind: PartFlags, Frame: x.frame, Field: field, Bits: bits})
}

func (x *explainer) Contents(field int, bits float64) {
	x.Parts = append(x.Parts, Part{Kind: PartContents, Frame: x.frame, Field: field, Bits: bits})
}

func (x *explainer) Component(field, k int, bits float64, by adaptive.Predictor, residual int64) {
	pl := &x.s.plans[field]
	at := pl.At + k
	if pl.Class == schema.ClassQuat {
		at++
	}
	p := Part{Kind: PartComponent, Frame: x.frame, Field: field, Component: k, Bits: bits, Value: x.Frames[x.frame].Ints[at]}
	if p.Held = by == adaptive.ByRest; !p.Held {
		p.Predictor = int(by)
	}
	if residual != adaptive.NoResidual && !p.Held {
		p.Residual, p.Forecasts = residual, true
		p.Forecast = int64(p.Value) - residual
		if pl.Class == schema.ClassAngle {
			p.Forecast &= int64(pl.Hi)
		}
	}
	x.Parts = append(x.Parts, p)
}
