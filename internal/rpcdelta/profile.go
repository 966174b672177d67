package rpcdelta

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/cost"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Profile reports the bits that each part of payloads takes, summed over many payloads.
// [NewProfile] returns an empty one. [Decoder.Measure] or [Encoder.Measure] sets the Profile that a
// decoder or encoder fills. Not safe for concurrent use.
//
// PayloadBits is the sum of CountBits, RoundingBits and the Bits of all Fields. The cost of a
// payload includes its redundant frames.
type Profile struct {
	// Payloads is the number of payloads, Frames the number of frames that they contained for the
	// first time: at the decoder the frames delivered, at the encoder the frames sent.
	Payloads, Frames uint64
	// Coded is the number of frames in the payloads, redundant frames included. The counts of
	// frames in a [ComponentProfile] refer to these frames.
	Coded uint64
	// FullBits is the sum of the full sizes of the frames counted by Frames, and HeaderBits that of
	// the headers of all payloads; see [Info].
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
	// and the contents of a byte string. In the run-length coded part of codec rle, the cost of a
	// token is divided equally among its bytes.
	Bits float64
	// FlagBits is the cost that belongs to no component: flags, the header or length of a group,
	// the index of a quat.
	FlagBits float64
	// Components are the components of the field, without the index of a quat. A byte string has
	// none.
	Components []ComponentProfile
}

// ComponentProfile is the part of a [FieldProfile] that concerns one component. The sum of Held and
// all Predictors is Profile.Coded.
type ComponentProfile struct {
	Bits float64
	// Held is the number of frames in which the component equals its reference and is coded as a
	// flag or, for integers in codec rle, as zero bytes. The reference is the frame before in the
	// payload, or the baseline for the oldest frame.
	Held uint64
	// Residuals counts residuals by magnitude: [0] is zero, [i] is 2^(i-1) to 2^i-1. Keyframes,
	// frequent values, bit sets, and integers in rle have no residuals.
	Residuals [33]uint64
	// Predictors counts all other frames, by the predictor of the component; see [PredictorName].
	Predictors [cost.Predictors]uint64
}

// PredictorName returns the name of predictor i, an index of [ComponentProfile].Predictors, as in
// docs/design/codec.md.
func PredictorName(i int) string { return cost.Names[i] }

// NewProfile returns an empty profile of frames of schema s.
func NewProfile(s *schema.Schema) *Profile {
	p := &Profile{Fields: make([]FieldProfile, len(s.Layouts()))}
	for i, l := range s.Layouts() {
		n := l.N
		if l.Class == schema.ClassQuat {
			n--
		}
		p.Fields[i] = FieldProfile{Name: l.Field.Name, Kind: l.Field.Kind, Components: make([]ComponentProfile, n)}
	}
	return p
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
		f, g := &p.Fields[i], &o.Fields[i]
		f.FullBits += g.FullBits
		f.Bits += g.Bits
		f.FlagBits += g.FlagBits
		for k := range f.Components {
			f.Components[k].add(&g.Components[k])
		}
	}
}

func (c *ComponentProfile) add(o *ComponentProfile) {
	c.Bits += o.Bits
	c.Held += o.Held
	for i, n := range o.Residuals {
		c.Residuals[i] += n
	}
	for i, n := range o.Predictors {
		c.Predictors[i] += n
	}
}
