package adaptive

import "errors"

// MaxFrames is the maximum number of frames in a payload.
const MaxFrames = 8

// MaxRing is the maximum number of frames that the codec looks back over, and the maximum age of a
// baseline.
const MaxRing = 64

// LearnReach is the number of sequence numbers that learning a frame spans, the frame included. An
// end keeps this many frames in addition to those that can be baselines.
const LearnReach = 25

var (
	// ErrMalformed is returned for a payload that no encoder produces.
	ErrMalformed = errors.New("adaptive: malformed payload")
	// ErrBaseline is returned if the baseline is unknown or is not the last frame learned.
	ErrBaseline = errors.New("adaptive: baseline is not known")
)

// Model is a compiled list of fields. It is immutable and safe for concurrent use.
type Model struct {
	groups     []group
	components []component // predicted components, by group
	bitSets    []component // components of bit sets, by group
	// Sizes of the slices of a modelState.
	inputs, lists, quats, bits, blobs int

	tables  *tables
	initial modelState // state of a stream that has not accepted any frame
}

// New compiles the fields of a frame that is sent rateHz times per second, for streams that start
// from the generic prior. The fields must be valid: disjoint components, ordered bounds.
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
