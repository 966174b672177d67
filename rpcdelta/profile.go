package rpcdelta

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Profile sums up what the bits of payloads are spent on. [NewProfile] makes one; a
// [Decoder] or an [Encoder] fills it. Not safe for concurrent use.
//
// PayloadBits is the sum of CountBits, RoundingBits and the Bits of all Fields. The cost of a
// payload includes its redundant frames.
type Profile struct {
	// Payloads is the number of payloads, Frames the number of frames that they contained for the
	// first time: at the decoder the frames delivered, at the encoder the frames sent.
	Payloads, Frames uint64
	// Coded is the number of frames in the payloads, redundant frames included. Counts by frame
	// below are over these.
	Coded uint64
	// FullBits and HeaderBits are those of [Info], over Frames and Payloads.
	FullBits, HeaderBits uint64
	// PayloadBits is the size of the coded part. CountBits is the cost of the number of frames in a
	// payload. RoundingBits is the cost of rounding up to whole bytes; it is negative for payloads
	// that end in zeros, which are not sent.
	PayloadBits, CountBits, RoundingBits float64
	// Fields are in the order of the schema's Fields.
	Fields []FieldProfile
}

// FieldProfile is the part of a [Profile] that concerns one field.
type FieldProfile struct {
	Name string
	Kind schema.Kind
	// FullBits is the field's part of the profile's FullBits.
	FullBits uint64
	// Bits is the cost of the field, in fractions of bits: FlagBits, the Bits of the components,
	// and the contents of a byte string. In the binary part of rle, the bytes of a token share its
	// cost equally.
	Bits float64
	// FlagBits is the cost that belongs to no component: flags, the header or length of a group,
	// the index of a quat.
	FlagBits float64
	// Components are the components of the field, without the index of a quat. A byte string has
	// none.
	Components []ComponentProfile
}

// ComponentProfile is the part of a [FieldProfile] that concerns one component. Held and all of
// Predictors add up to the profile's Coded.
type ComponentProfile struct {
	Bits float64
	// Held is the number of frames in which the component equals its reference, as a flag or, for
	// integers in rle, a zero says.
	Held uint64
	// Residuals counts residuals by magnitude: [0] is zero, [i] is 2^(i-1) to 2^i-1. Keyframes,
	// frequent values, bit sets, and integers in rle have no residuals.
	Residuals [33]uint64
	// Predictors counts what the component was coded from otherwise, see [PredictorName].
	Predictors [NPredictors]uint64
}

// NPredictors is the number of predictors.
const NPredictors = int(adaptive.ByNone) + 1

// PredictorName returns the name of predictor i, below [NPredictors], as in docs/codec.md.
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

// fits reports whether p was made for frames of this shape.
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

// mustFit panics if p is not nil and was made for another schema.
func (p *Profile) mustFit(s *format) {
	if p != nil && !p.fits(s) {
		panic("rpcdelta: Profile of another schema than " + s.RPC())
	}
}

// Add adds the sums of o. It panics if o is of another schema.
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

// payload adds a payload of the given size.
func (p *Profile) payload(c coder, in *payload, headerBits, payloadBits int) {
	p.Payloads++
	p.Coded += uint64(len(in.frames))
	p.HeaderBits += uint64(headerBits)
	p.PayloadBits += float64(payloadBits)
	p.RoundingBits += float64(payloadBits) - c.measure(in, (*meter)(p))
}

// frame adds a frame that was sent or delivered for the first time.
func (p *Profile) frame(s *format, f *schema.Frame) {
	p.Frames++
	for i := range p.Fields {
		n := uint64(s.plans[i].fullBits(f))
		p.Fields[i].FullBits += n
		p.FullBits += n
	}
}

// meter is a Profile that receives costs from a codec.
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
