package rpcdelta

import (
	"fmt"
	"strings"
)

// Field describes one argument of an RPC, as a schema file or a struct tag
// does. Zero values mean the kind's default.
type Field struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Columns are the trace columns that hold the values, in order. They do not
	// belong to the wire: two schemas that differ in them alone are equal.
	Columns []string `json:"columns,omitempty"`
	// Count is the number of values of a scalar, angle, uint, int, bool or bits
	// field; by default that of its columns, or 1.
	Count int `json:"count,omitempty"`
	// Resolution is the size of one step of a vec2, vec3 or scalar, in the
	// value's unit.
	Resolution float64 `json:"resolution,omitempty"`
	// Bits is the size of an angle (2 to 24, default 16: the turn is divided
	// into 2^Bits), of each of a quat's smallest three (3 to 20, default 12) or
	// of each of a unitvec's two components (3 to 20, default 12).
	Bits int `json:"bits,omitempty"`
	// Width is the number of bits of a uint, int or bits field, 1 to 64.
	Width int `json:"width,omitempty"`
	// Size is the number of bytes of a fixed field.
	Size int `json:"size,omitempty"`
	// Min and Max bound the values of a vec2, vec3 or scalar; by default less
	// than 2^23 steps either way. Max alone is the most bytes of a bytes field.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Velocity names the field that is this one's rate of change a second; for a
	// quat its angular velocity in world axes, in radians.
	Velocity string `json:"velocity,omitempty"`
	// VelocityScale converts the velocity's unit to this field's; default 1.
	VelocityScale float64 `json:"velocity_scale,omitempty"`
}

// String gives the field as both ends compare it: its name, its kind and all
// that decides the bits on the wire.
func (f Field) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Name, f.Kind)
	option := func(name string, set bool, v any) {
		if set {
			fmt.Fprintf(&b, " %s=%v", name, v)
		}
	}
	option("count", f.Count > 1 && f.Kind.values() == 0, f.Count)
	option("resolution", f.Resolution != 0, f.Resolution)
	option("bits", f.Bits != 0, f.Bits)
	option("width", f.Width != 0 && f.Kind != KindBool, f.Width)
	option("size", f.Size != 0, f.Size)
	if f.Min != nil {
		option("min", true, *f.Min)
	}
	if f.Max != nil {
		option("max", true, *f.Max)
	}
	option("velocity", f.Velocity != "", f.Velocity)
	option("velocity_scale", f.VelocityScale != 0 && f.VelocityScale != 1, f.VelocityScale)
	return b.String()
}

// Values is how many numbers the field has: what QuantizeField takes and
// RestoreField gives. A byte string counts as one.
func (f *Field) Values() int {
	if n := f.Kind.values(); n != 0 {
		return n
	}
	return f.Count
}

// IsBytes says whether the field is a byte string (fixed or bytes).
func (f *Field) IsBytes() bool { return f.Kind == KindFixed || f.Kind == KindBytes }
