package schema

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
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
	// Urgent determines whether a frame in which the field changed may wait for later frames at a
	// client that batches frames. By default, changes of bool and bits fields do not wait, and
	// neither do changes of other fields that the codec did not expect. It does not affect the wire
	// format.
	Urgent *bool `json:"urgent,omitempty"`
}

// String returns the name, the kind and the options of the field that affect the wire format. Both
// ends of a connection compare it. If Min or Max of a number is set, the text contains both bounds,
// as integers in steps of the resolution, because codecs use only these.
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

func (f *Field) fillCount() error {
	if n := kinds[f.Kind].values; n != 0 {
		if f.Count > 1 && f.Count != n {
			return fmt.Errorf("count %d, but a %s has %d values", f.Count, f.Kind, n)
		}
		if len(f.Columns) != 0 && len(f.Columns) != n {
			return fmt.Errorf("%d columns, want %d for a %s", len(f.Columns), n, f.Kind)
		}
		f.Count = 0
		return nil
	}
	if f.Count == 0 {
		f.Count = max(1, len(f.Columns))
	}
	if f.Count < 1 || f.Count > MaxComponents {
		return fmt.Errorf("count %d, want 1 to %d", f.Count, MaxComponents)
	}
	if len(f.Columns) != 0 && len(f.Columns) != f.Count {
		return fmt.Errorf("%d columns, but count is %d", len(f.Columns), f.Count)
	}
	return nil
}

// checkOptions returns an error if an option is set that the kind of the field ignores.
func (f *Field) checkOptions(c Class) error {
	ranged := c == ClassNumber && f.Kind != KindUnitVec
	for _, o := range []struct {
		name      string
		set, read bool
	}{
		{"resolution", f.Resolution != 0, ranged},
		{"bits", f.Bits != 0, c == ClassAngle || c == ClassQuat || f.Kind == KindUnitVec},
		{"width", f.Width != 0, c == ClassInteger},
		{"size", f.Size != 0, f.Kind == KindFixed},
		{"min", f.Min != nil, ranged},
		{"max", f.Max != nil, ranged || f.Kind == KindBytes},
		{"velocity", f.Velocity != "", ranged || c == ClassQuat},
		{"velocity_scale", f.VelocityScale != 0 && f.VelocityScale != 1, f.Velocity != ""},
	} {
		if o.set && !o.read {
			return fmt.Errorf("%s means nothing for kind %s", o.name, f.Kind)
		}
	}
	return nil
}

// checkKind returns an error if the kind of f is not one of kinds, which type t supports.
func (f *Field) checkKind(t reflect.Type, kinds ...Kind) error {
	if _, known := f.Kind.Class(); known && !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("type %v cannot be a %s; it can be %v", t, f.Kind, kinds)
	}
	return nil
}

// applyTag parses the options of a struct tag such as "resolution=0.1,velocity=Velocity" into f.
func (f *Field) applyTag(tag string) error {
	if tag == "" {
		return nil
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(tag, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(option), "=")
		if !ok || value == "" {
			return fmt.Errorf("tag option %q, want name=value", option)
		}
		if seen[name] {
			return fmt.Errorf("tag option %q: %s is given twice", option, name)
		}
		seen[name] = true
		if err := f.setOption(name, value); err != nil {
			return fmt.Errorf("tag option %q: %w", option, err)
		}
	}
	return nil
}

func (f *Field) setOption(name, value string) (err error) {
	switch name {
	case "kind":
		f.Kind = Kind(value)
	case "resolution":
		f.Resolution, err = strconv.ParseFloat(value, 64)
	case "bits":
		f.Bits, err = strconv.Atoi(value)
	case "width":
		f.Width, err = strconv.Atoi(value)
	case "min":
		f.Min, err = parseBound(value)
	case "max":
		f.Max, err = parseBound(value)
	case "velocity":
		f.Velocity = value
	case "velocity_scale":
		if f.VelocityScale, err = strconv.ParseFloat(value, 64); err == nil && f.VelocityScale == 0 {
			err = errors.New("must not be 0; leave out the velocity instead")
		}
	case "urgent":
		var urgent bool
		urgent, err = strconv.ParseBool(value)
		f.Urgent = &urgent
	default:
		return errors.New("unknown option; known are kind, resolution, bits, width, min, max, velocity, velocity_scale, urgent")
	}
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		want := map[string]string{"Atoi": "a whole number", "ParseFloat": "a number", "ParseBool": "true or false"}[number.Func]
		return errors.New("want " + want)
	}
	return err
}

func parseBound(value string) (*float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	return &v, err
}
