package rpcdelta

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Profile adds up what the bits of payloads are spent on; make one with
// [NewProfile] and have a [Decoder] or an [Encoder] fill it. All is sums over the
// measured payloads. Not safe for concurrent use.
//
// PayloadBits is the sum of CountBits, of RoundingBits and of all Fields' Bits. What a
// payload of several frames takes belongs to all of them, those that were there before
// included: that is what redundancy costs.
type Profile struct {
	// Payloads that were measured, and the Frames that they were the first to bring: at
	// the decoder those delivered, at the encoder those that no payload had before.
	Payloads, Frames uint64
	// Coded is how many frames the payloads held, older ones that ride along again
	// included. What is counted by frame below is counted over these.
	Coded uint64
	// FullBits and HeaderBits are what [Info] has, for Frames and for Payloads.
	FullBits, HeaderBits uint64
	// PayloadBits is the coded part. CountBits of it say how many frames a payload has.
	// RoundingBits are what whole bytes take beyond what is in them, or less where a
	// payload ends in zeros that are left out.
	PayloadBits, CountBits, RoundingBits float64
	// Fields is by the indexes of the schema's Fields.
	Fields []FieldProfile
}

// FieldProfile is a field's part of a [Profile].
type FieldProfile struct {
	Name string
	Kind schema.Kind
	// FullBits is the field's part of the profile's.
	FullBits uint64
	// Bits of payloads, in fractions: FlagBits, those of the components, and of a byte
	// string the rest. In rle's binary part the bytes of a field that one token stands
	// for have each the same share of that.
	Bits float64
	// FlagBits are those that are no component's: whether the field and its components
	// changed, the header or length that a group shares, the index of a quat.
	FlagBits float64
	// Components are those of the field in its frame, but for the index of a quat; a byte
	// string has none.
	Components []ComponentProfile
}

// ComponentProfile is a component's part of a [FieldProfile]. Held and all of Predictors
// are together the profile's Coded.
type ComponentProfile struct {
	Bits float64
	// Held is in how many frames it was said to be as its reference, by a flag or, of
	// integers in rle, by a zero.
	Held uint64
	// Residuals counts residuals: [0] those of zero, [i] magnitudes from 2^(i-1) to
	// 2^i-1. Those of frames without baseline, frequent values, sets of bits and integers
	// in rle have none.
	Residuals [33]uint64
	// Predictors counts what it was coded from otherwise, see [PredictorName].
	Predictors [NPredictors]uint64
}

// NPredictors is the number of predictors.
const NPredictors = int(adaptive.ByNone) + 1

// PredictorName is the name of predictor i, below [NPredictors], as docs/codec.md has
// it.
func PredictorName(i int) string { return predictorNames[i] }

var predictorNames = [NPredictors]string{
	adaptive.ByHold:    "hold",
	adaptive.BySlope:   "slope",
	adaptive.BySlopes:  "slopes",
	adaptive.ByScalars: "scalars",
	adaptive.ByMean:    "mean",
	adaptive.ByBend:    "bend",
	adaptive.ByTurn:    "turn",
	adaptive.ByTurnOn:  "turn on",
	adaptive.ByTurnFar: "turn far",
	adaptive.ByValue:   "frequent value",
	adaptive.ByNone:    "none",
}

// NewProfile returns an empty profile of frames of schema s.
func NewProfile(s *schema.Schema) *Profile {
	x := formatOf(s)
	p := &Profile{Fields: make([]FieldProfile, len(x.plans))}
	for i := range x.plans {
		pl, f := &x.plans[i], &p.Fields[i]
		f.Name, f.Kind = pl.Field.Name, pl.Field.Kind
		n := pl.N
		if pl.Class == schema.ClassQuat {
			n--
		}
		f.Components = make([]ComponentProfile, n)
	}
	return p
}

// fits says whether p was made for frames of this shape.
func (p *Profile) fits(s *format) bool {
	if len(p.Fields) != len(s.plans) {
		return false
	}
	for i := range p.Fields {
		if f := s.plans[i].Field; p.Fields[i].Name != f.Name || p.Fields[i].Kind != f.Kind {
			return false
		}
	}
	return true
}

// mustFit panics if p is not nil and of another schema.
func (p *Profile) mustFit(s *format) {
	if p != nil && !p.fits(s) {
		panic("rpcdelta: Profile of another schema than " + s.RPC())
	}
}

// Add adds all that o measured of frames of the same schema; it panics if theirs is
// another.
func (p *Profile) Add(o *Profile) {
	if len(p.Fields) != len(o.Fields) {
		panic("rpcdelta: Add of a Profile of another schema")
	}
	p.Payloads += o.Payloads
	p.Frames += o.Frames
	p.Coded += o.Coded
	p.FullBits += o.FullBits
	p.HeaderBits += o.HeaderBits
	p.PayloadBits += o.PayloadBits
	p.CountBits += o.CountBits
	p.RoundingBits += o.RoundingBits
	for i := range p.Fields {
		p.Fields[i].add(&o.Fields[i])
	}
}

func (f *FieldProfile) add(o *FieldProfile) {
	f.FullBits += o.FullBits
	f.Bits += o.Bits
	f.FlagBits += o.FlagBits
	for k := range f.Components {
		c, d := &f.Components[k], &o.Components[k]
		c.Bits += d.Bits
		c.Held += d.Held
		for i, n := range d.Residuals {
			c.Residuals[i] += n
		}
		for i, n := range d.Predictors {
			c.Predictors[i] += n
		}
	}
}

// payload adds a payload of such a size, with what the codec finds in it.
func (p *Profile) payload(c coder, in *payload, headerBits, payloadBits int) {
	p.Payloads++
	p.Coded += uint64(len(in.frames))
	p.HeaderBits += uint64(headerBits)
	p.PayloadBits += float64(payloadBits)
	p.RoundingBits += float64(payloadBits) - c.measure(in, (*meter)(p))
}

// frame adds a frame that a payload was the first to bring.
func (p *Profile) frame(s *format, f *schema.Frame) {
	p.Frames++
	for i := range p.Fields {
		n := uint64(s.plans[i].fullBits(f))
		p.Fields[i].FullBits += n
		p.FullBits += n
	}
}

// meter is a Profile as codecs fill it.
type meter Profile

var _ adaptive.Meter = (*meter)(nil)

func (m *meter) Row(int) {}

func (m *meter) Count(bits float64) { m.CountBits += bits }

func (m *meter) Flags(field int, bits float64) {
	m.Fields[field].Bits += bits
	m.Fields[field].FlagBits += bits
}

func (m *meter) Contents(field int, bits float64) { m.Fields[field].Bits += bits }

func (m *meter) Component(field, k int, cost float64, by adaptive.Predictor, residual int64) {
	f := &m.Fields[field]
	f.Bits += cost
	c := &f.Components[k]
	c.Bits += cost
	if by == adaptive.ByRest {
		c.Held++
		return
	}
	c.Predictors[by]++
	if residual != adaptive.NoResidual {
		c.Residuals[min(bits.Len64(magnitude(residual)), len(c.Residuals)-1)]++
	}
}
