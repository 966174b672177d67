// Package adaptive codes frames of quantized components by prediction and
// adaptive arithmetic coding. What adapts is a function of the frames that were
// taken, in order, and of nothing else; everything is integers, so that both
// ends compute the same on every platform.
package adaptive

import "errors"

// MaxRows is the most frames of one payload.
const MaxRows = 8

// MaxRing is the most frames that the codec looks back over, and the oldest
// that a baseline can be.
const MaxRing = 64

// LearnReach is one more than how far before a frame learning it reads. An end
// keeps so many frames beyond those that can be baselines.
const LearnReach = 25

var (
	// ErrMalformed is returned for a payload that no encoder makes.
	ErrMalformed = errors.New("adaptive: malformed payload")
	// ErrBaseline is returned where the baseline is not known, or is not the
	// last frame that was learned.
	ErrBaseline = errors.New("adaptive: baseline is not known")
)

// Kind says what a field's components are.
type Kind uint8

// The kinds of fields.
const (
	Number  Kind = iota // integers within Lo and Hi
	Angle               // unsigned, modulo 2^Bits
	Quat                // index of the largest, and three integers of at most Hi either way
	Integer             // unsigned or signed of Bits bits; it may count
	Bits                // a set of Bits bits
	Bytes               // a byte string
)

// Field is one field of a frame.
type Field struct {
	Kind  Kind
	At, N int // components: Ints[At : At+N]

	// Lo and Hi bound a Number's components; Hi those of a Quat, beside the index.
	Lo, Hi int32
	// Bits is the width of an Angle, of one value of an Integer (1 to 64; above
	// 32 a value takes two components, the low half first) or a Bits field, and
	// of one component of a Quat.
	Bits uint
	// Signed Integers are two's complement and sign-extended; others are
	// stored as the two's complement of their low 32 bits.
	Signed bool
	// Scalar marks a Number that may drive angles, as mouse counts do.
	Scalar bool

	// VelocityAt is the first component of the field that is this one's rate
	// of change, or -1. It is ignored unless that is a Number of as many
	// components (three for a Quat). VelocityFactor is what one step of it does
	// in a second: steps of this field; for a Quat, radians.
	VelocityAt     int
	VelocityFactor float64

	// Blob is the index in Row.Bytes of a Bytes field, MinBytes to MaxBytes long.
	Blob, MinBytes, MaxBytes int

	// Key is what a [Prior] knows the field by.
	Key uint64
}

// Row is one frame.
type Row struct {
	// Ints holds the components of every numeric field.
	Ints []int32
	// Bytes holds the byte strings.
	Bytes [][]byte
}

// Model is a compiled schema. It is immutable and safe for concurrent use.
type Model struct {
	groups     []group
	components []component
	bitSets    []component // of bit sets
	inputs     int
	lists      int
	quats      int
	bits       int
	blobs      int
	tables     *tables
	initial    modelState // of a stream of which nothing was taken
}

// New compiles the fields of a frame that is sent rateHz times a second, whose
// streams start from the generic prior. The fields must be valid: their
// components apart, bounds in order.
func New(fields []Field, rateHz float64) *Model { return Generic().Compile(fields, rateHz) }

// Compile is [New] for streams that start from p.
func (p *Prior) Compile(fields []Field, rateHz float64) *Model {
	m := &Model{tables: p.tables}
	if !(rateHz > 0) {
		rateHz = 60
	}
	b := builder{m: m, fields: fields, rate: rateHz}
	b.build()
	m.initial = m.newState()
	m.initial.reset(m)
	p.apply(m)
	return m
}
