package adaptive

// Kind is the kind of a field's components.
type Kind uint8

// The kinds of fields.
const (
	Number  Kind = iota // integers in Lo to Hi
	Angle               // unsigned integers modulo 2^Bits
	Quat                // index of the largest element, and three integers in -Hi to Hi
	Integer             // unsigned or signed integers of Bits bits, which may be counters
	Bits                // a bit set of Bits bits
	Bytes               // a byte string
)

// Field describes one field of a frame.
type Field struct {
	Kind  Kind
	At, N int // components: Ints[At : At+N]

	// Lo and Hi are the range of a Number's components; Hi is the bound of a Quat's components.
	Lo, Hi int32
	// Bits is the width of an Angle, of one value of an Integer or Bits field (1 to 64), or of one
	// component of a Quat. A value wider than 32 bits takes two components, the low half first.
	Bits uint
	// Signed marks an Integer as two's complement, sign-extended. Other Integers are stored as the
	// low 32 bits.
	Signed bool
	// Scalar marks a Number that may predict angles, such as mouse counts.
	Scalar bool

	// VelocityAt is the first component of the field that is this field's rate of change, or -1. It
	// is ignored unless that field is a Number with the same number of components, or three for a
	// Quat. VelocityFactor is the change per second caused by one step of the rate: in steps of
	// this field or, for a Quat, in radians.
	VelocityAt     int
	VelocityFactor float64

	// Blob is the index in Row.Bytes of a Bytes field of MinBytes to MaxBytes bytes.
	Blob, MinBytes, MaxBytes int

	// Key identifies the field in a [Prior]; 0 if no prior knows it.
	Key uint64
}

// Row is one frame.
type Row struct {
	Ints  []int32  // components of the numeric fields
	Bytes [][]byte // byte strings
}
