package schema

import (
	"cmp"
	"fmt"
	"strings"
)

// Kind determines how the values of a field are quantized, and how a codec computes the difference
// of two of them. Schema files and struct tags use these names.
type Kind string

// The kinds of fields. Values are the numbers that the user sees; components are the integers that
// a [Frame] holds for them.
const (
	// KindVec2 is a vector of two numbers with one resolution, coded as one group.
	KindVec2 Kind = "vec2"
	// KindVec3 is a vector of three numbers with one resolution, coded as one group.
	KindVec3 Kind = "vec3"
	// KindScalar is one or more numbers with one resolution, coded as one group.
	KindScalar Kind = "scalar"
	// KindAngle is one or more angles in degrees, each modulo one turn of 2^Bits steps.
	KindAngle Kind = "angle"
	// KindQuat is a rotation. The values are x, y, z and w; the components are the index of the
	// largest of them and the other three ("smallest three").
	KindQuat Kind = "quat"
	// KindUnitVec is a direction. The values are x, y and z; the two components are its octahedral
	// encoding.
	KindUnitVec Kind = "unitvec"
	// KindUint is one or more unsigned integers of Width bits.
	KindUint Kind = "uint"
	// KindInt is one or more signed integers of Width bits in two's complement.
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

// Class groups the kinds that codecs treat alike.
type Class uint8

const (
	ClassNumber  Class = iota // quantized numbers; differences are taken by subtraction
	ClassAngle                // quantized angles; differences are taken modulo 2^Bits
	ClassQuat                 // rotations as their smallest three components
	ClassInteger              // integers, booleans and bit sets; differences are taken by XOR
	ClassBytes                // byte strings
)

// kinds lists the class of each kind and the number of its values, 0 if the field's Count
// determines it.
var kinds = map[Kind]struct {
	class  Class
	values int
}{
	KindVec2:    {ClassNumber, 2},
	KindVec3:    {ClassNumber, 3},
	KindScalar:  {ClassNumber, 0},
	KindUnitVec: {ClassNumber, 3},
	KindAngle:   {ClassAngle, 0},
	KindQuat:    {ClassQuat, 4},
	KindUint:    {ClassInteger, 0},
	KindInt:     {ClassInteger, 0},
	KindBool:    {ClassInteger, 0},
	KindBits:    {ClassInteger, 0},
	KindFixed:   {ClassBytes, 1},
	KindBytes:   {ClassBytes, 1},
}

// Class returns the class of kind k and reports whether k is known.
func (k Kind) Class() (Class, bool) {
	info, ok := kinds[k]
	return info.class, ok
}

// Field describes one field, as a schema file or a struct tag does. A zero option means the default
// of the kind.
type Field struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Columns names the columns of a trace that hold the values, in order. They do not affect the
	// wire format: two schemas that differ only in columns are equal.
	Columns []string `json:"columns,omitempty"`
	// Count is the number of values of a scalar, angle, uint, int, bool or bits field. The default
	// is the number of columns, or 1.
	Count int `json:"count,omitempty"`
	// Resolution is the size of one step of a vec2, vec3 or scalar, in the unit of the value.
	Resolution float64 `json:"resolution,omitempty"`
	// Bits is the size of an angle (2 to 24, default 16), or of each of the smallest three
	// components of a quat (3 to 20, default 12), or of each of the two components of a unitvec (3
	// to 20, default 12).
	Bits int `json:"bits,omitempty"`
	// Width is the size of a value of a uint, int or bits field, 1 to 64 bits.
	Width int `json:"width,omitempty"`
	// Size is the size of a fixed field in bytes.
	Size int `json:"size,omitempty"`
	// Min and Max bound the values of a vec2, vec3 or scalar. The defaults are -(2^23-1) and 2^23-1
	// steps. For a bytes field, Max is the maximum size in bytes.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Velocity names the field that holds the rate of change of this field, per second. For a quat
	// it is the angular velocity about the world axes, in radians per second.
	Velocity string `json:"velocity,omitempty"`
	// VelocityScale is the factor from the unit of the velocity to the unit of this field. The
	// default is 1.
	VelocityScale float64 `json:"velocity_scale,omitempty"`
	// Urgent tells a client that batches frames whether a change of the field must not wait for
	// later frames. By default, changes of bool and bits fields do not wait, and neither do changes
	// of other fields that the codec did not expect. It does not affect the wire format.
	Urgent *bool `json:"urgent,omitempty"`
}

// String returns the name, the kind and the options of the field that affect the wire format. Both
// ends of a connection compare it. If Min or Max of numbers is set, it has both bounds as integers,
// in steps of the resolution: the codecs depend on these alone.
func (f Field) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Name, f.Kind)
	option := func(name string, set bool, v any) {
		if set {
			fmt.Fprintf(&b, " %s=%v", name, v)
		}
	}
	option("count", f.Count > 1 && kinds[f.Kind].values == 0, f.Count)
	option("resolution", f.Resolution != 0, f.Resolution)
	option("bits", f.Bits != 0, f.Bits)
	option("width", f.Width != 0 && f.Kind != KindBool, f.Width)
	option("size", f.Size != 0, f.Size)
	if f.IsBytes() && f.Max != nil {
		option("max", true, *f.Max)
	} else if steps := (&Layout{Field: &f}); steps.compileGroup() == nil && (f.Min != nil || f.Max != nil) {
		fmt.Fprintf(&b, " steps=%d..%d", steps.Lo, steps.Hi)
	}
	option("velocity", f.Velocity != "", f.Velocity)
	option("velocity_scale", f.VelocityScale != 0 && f.VelocityScale != 1, f.VelocityScale)
	return b.String()
}

// Values returns the number of values of the field: the length of the slice that
// [Schema.QuantizeField] takes, and the number of values that [Schema.RestoreField] appends. A byte
// string counts as one.
func (f *Field) Values() int {
	return cmp.Or(kinds[f.Kind].values, f.Count)
}

// IsBytes reports whether the field is a byte string, of kind fixed or bytes.
func (f *Field) IsBytes() bool { return f.Kind == KindFixed || f.Kind == KindBytes }
