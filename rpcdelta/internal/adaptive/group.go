package adaptive

// family is a set of experts that predict a component.
type family uint8

const (
	familyPlain        family = iota // slopes of the component's own past
	familyAngled                     // slopes, and scalars of the same frame
	familyDerived                    // old and new value of the derivative
	familyTurned                     // quaternion with an angular velocity
	familyExtrapolated               // quaternion without an angular velocity
)

const families = int(familyExtrapolated) + 1

// form is the way in which a group's values are coded.
type form uint8

const (
	formNumbers form = iota
	formQuat
	formBits
	formBytes
)

// group is a compiled field. Groups are in coding order.
type group struct {
	form      form
	family    family
	field     int    // index of the field
	key       uint64 // Field.Key
	at, n     int    // range of components in a frame
	firstComp int    // first of Model.components, or of Model.bitSets
	numComps  int
	index     int // of a quaternion, a byte string or the first bit of a bit set in bitModels

	diffsAt   int  // first of refFrames.diffs
	diffShift uint // shift that drops the diffs of other groups from eight loaded ones

	// Prediction.
	velocity       int // first component of the derivative, or -1
	velocityFactor int64
	scalars        [2]int // components that predict an angle
	numScalars     int
	counter        bool // the reference may be the next step instead of the last value

	// Keyframes, and bounds.
	minBitsBefore uint // minimum size of the static code of all groups before this one
	noLength      bool // angles: magnitudes without a common length
	maxLength     uint // maximum length of a magnitude, in bits
	lengthBits    uint // width of a magnitude's length
	hasSigns      bool // values may be negative

	// Quaternions.
	quatMax     int32 // bound of a component
	quatBits    uint  // width of a component
	unpackScale int64
	packScale   int64

	// Byte strings.
	blob, minBytes, maxBytes int
}

// component is a component of a number, a quaternion or a bit set.
type component struct {
	at     int  // index in Frame.Ints
	wrap   uint // values are modulo 2^wrap, unless it is 0
	mask   int32
	signed bool
	lo, hi int64
	inputs int // index of the weights of the scalars, or -1
	list   int // index of the list of frequent values, or -1
}
