package rpcdelta

import (
	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Header is the header of a payload, as far as it can be parsed without the stream.
type Header struct {
	// RPC is the number of the RPC. Long reports the long form of the header, Bits its length.
	RPC  int
	Long bool
	Bits int
	// Seq is the low bits of the sequence number: 7 in a short header, 16 in a long one.
	Seq uint16
	// Distance is the distance to the baseline in frames. If it is 0, there is no baseline, and
	// Epoch is the epoch of the frame.
	Distance int
	Epoch    uint8
	// Checked reports whether there is a Hash of the baseline and of the learned state.
	Checked bool
	Hash    uint16
}

// ParseHeader parses the header of a payload.
func ParseHeader(payload []byte) (Header, error) {
	h, err := parseHeader(payload)
	if err != nil {
		return Header{}, err
	}
	return Header{
		RPC: int(h.rpc), Long: h.long, Bits: h.bits(), Seq: h.seq,
		Distance: h.distance, Epoch: h.epoch, Checked: h.checked, Hash: h.hash,
	}, nil
}

// Explanation describes the parts of one payload, for people; see [Decoder.Explain].
type Explanation struct {
	// Frames are the frames of the payload, oldest first. Newest is the sequence number of the last
	// one. Base is the baseline, nil if there is none, and BaseSeq its sequence number.
	Newest, BaseSeq uint64
	Frames          []*schema.Frame
	Base            *schema.Frame
	// CountBits is the cost of the number of frames. Parts are in coding order.
	CountBits float64
	Parts     []Part
}

// PartKind is the kind of a Part.
type PartKind uint8

// The kinds of parts.
const (
	// PartFlags is what belongs to no component: flags, a common length, the index of a quat.
	PartFlags PartKind = iota
	// PartComponent is a component.
	PartComponent
	// PartContents is a byte string.
	PartContents
)

// Part is one part of a payload.
type Part struct {
	Kind PartKind
	// Frame is the index of the frame and Field that of the field in the schema. Component is the
	// index of the component in the field, without the index of a quat.
	Frame, Field, Component int
	// Bits is the cost of the part, in fractions of bits.
	Bits float64
	// Value of a component. If Held, it equals its reference. Otherwise Predictor is what it was
	// coded from, see [PredictorName]. If Forecasts, there is a Residual, its difference from
	// Forecast.
	Value     int32
	Predictor int
	Held      bool
	Residual  int64
	Forecast  int64
	Forecasts bool
}

// Explain replaces e with an explanation of the next payload that is decoded; payloads that are
// dropped do not count. nil cancels it. Explaining a payload allocates.
func (d *Decoder) Explain(e *Explanation) { d.explanation = e }

// explain explains the payload that was just decoded. Nothing may have been learned since.
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

// explainer fills an Explanation.
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
	p := Part{
		Kind: PartComponent, Frame: x.frame, Field: field, Component: k, Bits: bits,
		Value: x.Frames[x.frame].Ints[at],
	}
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
