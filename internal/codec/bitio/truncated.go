package bitio

import "math/bits"

// TruncatedBits returns how many bits the truncated integer v takes below limit, 0 to 32. It panics
// unless v < limit.
func TruncatedBits(v, limit uint32) int {
	if v >= limit {
		panic("bitio: truncated integer is not below its limit")
	}
	return int(truncatedBits(v, limit))
}

// truncatedBits needs v < limit. The engine writes the bits from the lowest while value+mask <
// limit. With 2^k the largest power of two not above limit, that holds for the first k bits
// whatever they are, and for one more if the low k bits leave room for it below limit.
func truncatedBits(v, limit uint32) uint {
	k := truncatedLow(limit)
	if v&(1<<k-1)+1<<k < limit {
		k++
	}
	return k
}

// truncatedLow returns how many bits every truncated integer below limit has; limit is not 0.
func truncatedLow(limit uint32) uint {
	return uint(bits.Len32(limit)) - 1
}
