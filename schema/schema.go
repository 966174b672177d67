package schema

import "github.com/uplink-rpc/uplink/internal/schema"

// Kind determines how the values of a field are quantized, and how a codec computes the difference
// of two of them. Schema files and struct tags use these names; it is a string.
type Kind = schema.Kind

// The kinds of fields. Values are the numbers that the user sees; components are the integers that
// a [Frame] holds for them.
const (
	// KindVec2 is a vector of two numbers with one resolution, coded as one group.
	KindVec2 = schema.KindVec2
	// KindVec3 is a vector of three numbers with one resolution, coded as one group.
	KindVec3 = schema.KindVec3
	// KindScalar is one or more numbers with one resolution, coded as one group.
	KindScalar = schema.KindScalar
	// KindAngle is one or more angles in degrees, each modulo one turn of 2^Bits steps.
	KindAngle = schema.KindAngle
	// KindQuat is a rotation. The values are x, y, z and w; the components are the index of the
	// largest of them and the other three ("smallest three").
	KindQuat = schema.KindQuat
	// KindUnitVec is a direction. The values are x, y and z; the two components are its octahedral
	// encoding.
	KindUnitVec = schema.KindUnitVec
	// KindUint is one or more unsigned integers of Width bits.
	KindUint = schema.KindUint
	// KindInt is one or more signed integers of Width bits in two's complement.
	KindInt = schema.KindInt
	// KindBool is one or more booleans.
	KindBool = schema.KindBool
	// KindBits is one or more bit sets of Width bits.
	KindBits = schema.KindBits
	// KindFixed is a byte string of exactly Size bytes.
	KindFixed = schema.KindFixed
	// KindBytes is a byte string of at most Max bytes.
	KindBytes = schema.KindBytes
)

// Vec2 is a point or vector in the plane, with the fields X and Y of type float64. A field of this
// type needs the option resolution.
type Vec2 = schema.Vec2

// Vec3 is a point or vector in space, with the fields X, Y and Z of type float64. A field of this
// type needs the option resolution.
type Vec3 = schema.Vec3

// UnitVec is a direction, with the fields X, Y and Z of type float64. Quantization normalizes it; a
// restored direction has length 1. The option bits sets the size of each of its two components
// (default 12).
type UnitVec = schema.UnitVec

// Quat is a rotation as a quaternion, with the fields X, Y, Z and W of type float64. Quantization
// normalizes it; a restored quaternion has length 1, and its largest component is positive. The
// option bits sets the size of each of its smallest three components (default 12).
type Quat = schema.Quat

// Rotator is a rotation as three angles in degrees, with the fields Pitch, Yaw and Roll of type
// float64. A restored angle is at least -180 and less than 180. The option bits sets the number of
// steps of a turn, 2^bits (default 16).
type Rotator = schema.Rotator

// Angle is an angle in degrees, a float64. A restored angle is at least -180 and less than 180. The
// option bits sets the number of steps of a turn, 2^bits (default 16).
type Angle = schema.Angle

// Field describes one field, as a schema file or a struct tag does. A zero option means the default
// of the kind.
//
//	Name       string
//	Kind       Kind
//	Columns    []string // columns of a trace with the values, in order; without effect on the wire
//	Count      int      // values of a scalar, angle, uint, int, bool or bits; default 1, or one per column
//	Resolution float64  // size of one step of a vec2, vec3 or scalar, in the unit of the value
//	Bits       int      // size of an angle, 2 to 24, default 16; of each of the smallest three components
//	                    // of a quat and the two of a unitvec, 3 to 20, default 12
//	Width      int      // size of a value of a uint, int or bits, 1 to 64 bits
//	Size       int      // size of a fixed in bytes
//	Min, Max   *float64 // range of a vec2, vec3 or scalar, default 2^23-1 steps; Max is the maximum
//	                    // size of bytes
//	Velocity   string   // the field with the rate of change of this field, per second; of a quat the
//	                    // angular velocity about the world axes, in radians per second
//	VelocityScale float64 // factor from the unit of the velocity to that of this field, default 1
//	Urgent        *bool   // whether a change must not wait for later frames; by default one of a bool or
//	                      // bits does not wait, and no other that the codec did not expect
//
// The members of schema files have these names in lower case, with an underscore in velocity_scale.
// The method String returns the description that both ends compare, Values the number of values.
type Field = schema.Field

// Frame holds the quantized values of one call or object. [Schema] has a method NewFrame that
// returns one. Not safe for concurrent use.
//
//	Ints  []int32  // components of the numeric fields, in field order; unsigned values of 32 bits in
//	               // two's complement, the low half first if a value is wider than 32 bits
//	Bytes [][]byte // byte strings, in field order
//
//	func (f *Frame) CopyFrom(o *Frame)   // copies a frame of the same schema
//	func (f *Frame) Equal(o *Frame) bool
type Frame = schema.Frame

// RangeError reports a value that cannot be quantized because it is not a number or outside the
// range of its field. Its fields are RPC, Field and Limit, which are strings, and Value, the value
// as passed.
type RangeError = schema.RangeError

// Schema describes the fields of an RPC or of a replicated object. It is immutable and safe for
// concurrent use.
//
//	func (s *Schema) RPC() string         // name of the RPC or object
//	func (s *Schema) RateHz() float64     // expected number of calls per second
//	func (s *Schema) Fields() []Field     // with their defaults set; not to be modified
//	func (s *Schema) Components() int     // number of integers of a frame
//	func (s *Schema) Fingerprint() uint64 // equal at two ends with the same wire format
//	func (s *Schema) NewFrame() *Frame    // each component 0, each byte string of minimum length
//	func (s *Schema) Check(f *Frame) error // of another shape, or a RangeError
//	func (s *Schema) AppendJSON(dst []byte) ([]byte, error) // as a schema file
//
// The following convert the values of field i. Errors are a [*RangeError]; only errors allocate.
//
//	func (s *Schema) QuantizeField(f *Frame, i int, values []float64) error
//	func (s *Schema) RestoreField(dst []float64, f *Frame, i int) []float64 // appends the values
//	func (s *Schema) SetUint(f *Frame, i, k int, v uint64) error // value k of a uint, bits or bool
//	func (s *Schema) Uint(f *Frame, i, k int) uint64
//	func (s *Schema) SetInt(f *Frame, i, k int, v int64) error   // value k of an int
//	func (s *Schema) Int(f *Frame, i, k int) int64
//	func (s *Schema) SetBytes(f *Frame, i int, b []byte) error   // a byte string, copied
//	func (s *Schema) BytesOf(f *Frame, i int) []byte             // part of the frame
type Schema = schema.Schema

// New returns the schema of RPC rpc with the given fields, at most 256, with at most 1,024
// components and 16 KiB of integers and byte strings. rateHz is the expected number of calls per
// second, at most 1000; 0 means 60. The error names the invalid field.
func New(rpc string, rateHz float64, fields []Field) (*Schema, error) {
	return schema.New(rpc, rateHz, fields)
}

// Parse parses a schema file of at most 192 KiB. An unknown member is an error.
func Parse(data []byte) (*Schema, error) { return schema.Parse(data) }

// Type converts between values of the Go struct T and frames of its schema. Only [Compile] uses
// reflection. A Type is immutable and safe for concurrent use.
type Type[T any] struct{ typ *schema.Type[T] }

// Compile derives the schema of RPC rpc from the fields and tags of the struct T. rateHz is the
// expected number of calls per second; 0 means 60. It supports the types of this package, booleans,
// integers and floats, arrays of these, byte arrays, byte slices, strings and embedded structs. Any
// other type needs the option max=N and is encoded as msgpack. Fields tagged `uplink:"-"` are not
// sent. The error names the field.
func Compile[T any](rpc string, rateHz float64) (*Type[T], error) {
	t, err := schema.Compile[T](rpc, rateHz)
	if err != nil {
		return nil, err
	}
	return &Type[T]{t}, nil
}

// Schema returns the schema of T.
func (t *Type[T]) Schema() *Schema { return t.typ.Schema() }

// Quantize quantizes v into f, a frame of the schema. If a field cannot hold its value, the error
// is a [*RangeError], and the contents of f are then undefined. It allocates only for fields that
// are encoded as msgpack.
func (t *Type[T]) Quantize(f *Frame, v *T) error { return t.typ.Quantize(f, v) }

// Restore writes the values of f to v. Byte slices are overwritten in place if their capacity
// suffices, so repeated calls with the same v do not allocate for them. Changed strings and fields
// that are encoded as msgpack are allocated.
func (t *Type[T]) Restore(v *T, f *Frame) error { return t.typ.Restore(v, f) }
