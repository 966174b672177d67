package packed

import (
	"math"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
)

// The integers of a group have the same width, which a header declares. Source: WritePackedVector
// in NetSerialization.h of Unreal Engine.

// groupHeader returns the header of a group whose largest magnitude is m: two less than the width
// of its biased integers. It reports false if the group cannot hold m.
func groupHeader(m uint64, maxHeader uint32) (header uint32, ok bool) {
	b := uint32(max(bits.Len64(m), 1)) // ceil(log2(1+m)), at least 1
	return b - 1, b <= maxHeader
}

// groupBits returns the size in bits of a group of n integers.
func groupBits(n int, m uint64, maxHeader uint32) (int, bool) {
	h, ok := groupHeader(m, maxHeader)
	return bitio.TruncatedBits(h, maxHeader) + n*int(h+2), ok
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}

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
	h, _ := groupHeader(m, limit)
	h = min(h, limit-1)
	return bitio.TruncatedBits(h, limit) + len(v)*int(h+2)
}

// writeGroup writes a group of integers, which must fit.
func writeGroup(w *bitio.Writer, v []int64, header, maxHeader uint32) {
	w.WriteTruncated(header, maxHeader)
	width, bias := uint(header+2), int64(1)<<(header+1)
	for _, x := range v {
		w.WriteBits(uint64(x+bias), width)
	}
}

// readGroup reads len(v) integers of a group.
func readGroup(r *bitio.Reader, v []int64, maxHeader uint32) {
	header := r.ReadTruncated(maxHeader)
	width, bias := uint(header+2), int64(1)<<(header+1)
	for i := range v {
		v[i] = int64(r.ReadBits(width)) - bias
	}
}
