package rpcdelta

// Kind says how a field's values become integers and how their difference is
// taken. The names are those of schema files and struct tags.
type Kind string

// The kinds of fields. "Values" are the numbers that a user sees, "components"
// the integers that a [Frame] holds for them.
const (
	// KindVec2 is two numbers of one resolution, coded as one group.
	KindVec2 Kind = "vec2"
	// KindVec3 is three numbers of one resolution, coded as one group.
	KindVec3 Kind = "vec3"
	// KindScalar is one or more numbers of one resolution, coded as one group.
	KindScalar Kind = "scalar"
	// KindAngle is one or more angles in degrees, each modulo 2^Bits of a turn.
	KindAngle Kind = "angle"
	// KindQuat is a rotation x, y, z, w: four values, four components (the
	// index of the largest and the other three).
	KindQuat Kind = "quat"
	// KindUnitVec is a direction: three values, two components (octahedral).
	KindUnitVec Kind = "unitvec"
	// KindUint is one or more unsigned integers of Width bits.
	KindUint Kind = "uint"
	// KindInt is one or more signed integers of Width bits, two's complement.
	KindInt Kind = "int"
	// KindBool is one or more booleans.
	KindBool Kind = "bool"
	// KindBits is one or more bit sets of Width bits.
	KindBits Kind = "bits"
	// KindFixed is a byte string of exactly Size bytes.
	KindFixed Kind = "fixed"
	// KindBytes is a byte string of at most Max bytes.
	KindBytes Kind = "bytes"
)

// class groups the kinds that one rule of the codecs serves.
type class uint8

const (
	classGroup  class = iota // numbers that are subtracted
	classAngle               // numbers that are subtracted modulo 2^bits
	classQuat                // smallest three
	classBinary              // integers that are XORed
	classBlob                // byte strings
)

func (k Kind) class() (class, bool) {
	switch k {
	case KindVec2, KindVec3, KindScalar, KindUnitVec:
		return classGroup, true
	case KindAngle:
		return classAngle, true
	case KindQuat:
		return classQuat, true
	case KindUint, KindInt, KindBool, KindBits:
		return classBinary, true
	case KindFixed, KindBytes:
		return classBlob, true
	}
	return 0, false
}

// values is how many numbers a field of this kind has, or 0 where the field's
// Count says so.
func (k Kind) values() int {
	switch k {
	case KindVec2:
		return 2
	case KindVec3, KindUnitVec:
		return 3
	case KindQuat:
		return 4
	case KindFixed, KindBytes:
		return 1
	default:
		return 0
	}
}
