package snapshot

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// Of describes objects by the schema of a struct of the same tags and kinds as an RPC's, as [schema.Compile] makes
// it: an object's row is its frame's Ints, followed by its byte strings as [Bytes]. A field that takes the object
// beyond [MaxFields] or [MaxComponents] is an error that names it. [Compile] moves structs into rows.
func Of(rpc *schema.Schema) (*Schema, error) {
	var fields, strings []Field
	for _, f := range rpc.Fields() {
		own := Field{Name: f.Name, N: f.Values()}
		if f.IsBytes() {
			strings = append(strings, own.ofBytes(&f))
		} else {
			fields = append(fields, own.of(&f)...)
		}
	}
	s, err := NewSchema(append(fields, strings...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rpc.RPC(), err)
	}
	return s, nil
}

// of makes the fields of one of numbers.
func (own Field) of(f *schema.Field) []Field {
	half := int32(1)<<max(f.Bits-1, 0) - 1
	switch f.Kind {
	case schema.KindQuat:
		own.Kind, own.Lo, own.Hi = Quat, -half, half
		return []Field{own}
	case schema.KindUnitVec:
		own.N, own.Lo, own.Hi = 2, -half, half
	case schema.KindAngle:
		own.Kind, own.Hi = Angle, 1<<f.Bits-1
	case schema.KindUint, schema.KindBool, schema.KindBits, schema.KindInt:
		return own.ofInteger(f)
	default:
		own.Lo, own.Hi = stepsOf(f.Min, f.Resolution, -(1<<23-1)), stepsOf(f.Max, f.Resolution, 1<<23-1)
	}
	return own.split(3)
}

// ofInteger makes a field of each component: one that is wider than 32 bits has two, the low half first. What needs
// all 32 bits is in two's complement, as in a frame.
func (own Field) ofInteger(f *schema.Field) []Field {
	own.Kind = Flags
	signed := f.Kind == schema.KindInt
	if f.Width <= 32 {
		own.Lo, own.Hi = integerBounds(f.Width, signed)
		return own.split(1)
	}
	low, high := own, own
	low.N, high.N = 1, 1
	low.Lo, low.Hi = integerBounds(32, true)
	high.Lo, high.Hi = integerBounds(f.Width-32, signed)
	var out []Field
	for range own.N {
		out = append(out, low, high)
	}
	return out
}

// integerBounds are those of an integer of 1 to 32 bits.
func integerBounds(width int, signed bool) (lo, hi int32) {
	if signed || width == 32 {
		return -1 << (width - 1), int32(int64(1)<<(width-1) - 1)
	}
	return 0, int32(int64(1)<<width - 1)
}

func (own Field) ofBytes(f *schema.Field) Field {
	own.Kind, own.Lo, own.Hi = Bytes, int32(f.Size), int32(f.Size)
	if f.Kind == schema.KindBytes {
		own.Lo, own.Hi = 0, int32(*f.Max)
	}
	own.N = BytesComponents(int(own.Hi))
	return own
}

// stepsOf is a bound in steps, by the rule of rpcdelta.
func stepsOf(v *float64, resolution float64, otherwise int32) int32 {
	if v == nil {
		return otherwise
	}
	return int32(math.Floor(float64(*v*(1/resolution)) + 0.5))
}

// split makes fields of at most so many components.
func (own Field) split(most int) (out []Field) {
	for left := own.N; left > 0; left -= own.N {
		own.N = min(left, most)
		out = append(out, own)
	}
	return out
}
