package packed

import (
	"math"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
)

// The integers of a group have the same width, which a header declares. Source: WritePackedVector
// in NetSerialization.h of Unreal Engine.

// groupHeader returns the header of a group whose largest magnitude is m: two less than the width
// of its biased integers.
func groupHeader(m uint64) uint32 {
	return uint32(max(bits.Len64(m), 1)) - 1 // ceil(log2(1+m)) - 1
}

func groupBits(n int, header, maxHeader uint32) int {
	return bitio.TruncatedBits(header, maxHeader) + n*int(header+2)
}

func magnitude(v int64) uint64 { return uint64(max(v, -v)) }

// VectorBits returns the size in bits of a packed vector, see inspect.PackedVectorBits.
func VectorBits(v []float64, scale float64, maxBits int) int {
	m := uint64(0)
	for _, x := range v {
		if x = math.Floor(float64(x*scale) + 0.5); x != x || x < -(1<<62) || x > 1<<62 {
			x = 1 << 62
		}
		m = max(m, magnitude(int64(x)))
	}
	limit := uint32(min(max(maxBits, 1), 31))
	return groupBits(len(v), min(groupHeader(m), limit-1), limit)
}
