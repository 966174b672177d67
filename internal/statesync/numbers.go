package statesync

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// A number is coded as the class of its magnitude, and then its sign and the bits of its magnitude
// that the class leaves open, with probability 1/2 each. Magnitudes up to 3 are classes of their
// own; from there on each octave has two. The probabilities of the classes are constants of the
// level, which is the expected magnitude.

// levels is the number of levels of magnitude, three per octave.
const levels = rangecoder.Levels

// level returns the level of an expected magnitude, given as the logarithm (Q8) of the magnitude in
// Q4.
func level(scale int64) int { return rangecoder.Level(scale) }

// tables holds the probabilities of the classes for each level.
var tables = func() (t [levels]rangecoder.Table) {
	for l := range t {
		f := frequencies(l)
		t[l].Set(&f)
	}
	return t
}()

// class returns the class of a magnitude below 2^32, and the number of bits that it leaves open,
// with the sign. It has no branches, because the processor could not predict them.
func class(v uint64) (s int, open uint) {
	n := bits.Len64(v)
	rest := max(n-2, 0)
	return max(2*n-2, 0) + int(v>>rest&1), uint(min(n, rest+1))
}

// lowest returns the lowest magnitude of a class, and the number of bits that the class leaves
// open.
func lowest(s int) (v uint64, rest uint) {
	if s < 4 {
		return uint64(s), 0
	}
	rest = uint(s-2) / 2
	return uint64(2+s&1) << rest, rest
}

// frequencies returns the frequencies of the classes of a level.
func frequencies(level int) (f [rangecoder.Symbols]uint16) {
	mid := []int64{72, 90, 114}[level%3] << (level / 3) * 2 // median, Q8
	above := func(s int) int64 {
		if s == 0 {
			return rangecoder.Scale - rangecoder.Symbols
		}
		v, _ := lowest(s)
		return (rangecoder.Scale - rangecoder.Symbols) * mid / (mid + int64(v)<<8 - 128)
	}
	sum := 0
	for s := range f {
		n := above(s)
		if s+1 < len(f) {
			n -= above(s + 1)
		}
		f[s] = uint16(n + 1)
		sum += int(f[s])
	}
	f[0] += uint16(rangecoder.Scale - sum)
	return f
}
