package inspect

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/packed"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// FullBits returns the size in bits of a frame of schema s as a game engine sends it: numbers as
// [PackedVectorBits] describes, all other fields uncompressed, and nothing as a difference. Savings
// are measured against it. It does not allocate after the first call for s.
func FullBits(s *schema.Schema, f *schema.Frame) int { return packed.Of(s).FullBits(f) }

// PackedVectorBits returns the size in bits of a vector of up to three numbers, rounded to 1/scale,
// as Unreal Engine's FVector_NetQuantize types serialize it. scale is 1, 10 or 100. maxBits is the
// maximum number of bits per component: 20 for FVector_NetQuantize, whose scale is 1, and at most
// 24 for the others. A number that is too large is clamped, as in the engine.
func PackedVectorBits(v []float64, scale float64, maxBits int) int {
	return packed.VectorBits(v, scale, maxBits)
}

// BinaryBytes returns the size in bytes of the binary part of a frame of schema s in codec rle
// before run-length coding: the integers and byte strings, XORed with the baseline's.
func BinaryBytes(s *schema.Schema, f *schema.Frame) int { return packed.Of(s).BinarySize(f) }
