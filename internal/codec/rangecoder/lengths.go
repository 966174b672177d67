package rangecoder

import "math/bits"

// Levels is the number of levels of magnitude, three per octave.
const Levels = 40

// Level returns the level of an expected magnitude, given as the logarithm (Q8) of the magnitude in
// Q4.
func Level(scale int64) int { return int(min(max((scale+256)*3>>8, 0), Levels-1)) }

// middle returns the length at which the decisions of a level begin, in bits.
func middle(level int) int { return (level + 1) / 3 }

// lengths is the number of possible lengths of a magnitude, 0 to 32 bits.
const lengths = 33

// LengthModel holds the adaptive probabilities of the lengths of magnitudes at one level. Call Init
// before use.
type LengthModel [lengths]Prob

// Init sets the initial probabilities: with m the median magnitude of the level, a magnitude
// exceeds x with probability m / (m + x).
func (l *LengthModel) Init(level int) {
	// Three levels an octave, in Q8.
	mid := []int64{72, 90, 114}[level%3] << (level / 3) * 2
	longer := func(k int) int64 { return mid * 65536 / (mid + 256<<k - 128) }
	for k := range l {
		p := longer(k)
		switch at := middle(level); {
		case k > at:
			p = p * 65536 / max(longer(k-1), 1)
		case k < at:
			p = (p - longer(k+1)) * 65536 / (65536 - longer(k+1))
		}
		l[k] = Prob{uint16(min(max(p, 200), 65336)), 10}
	}
}

// Uint codes v, of at most 32 bits: its length with the probabilities of l, initialized at level,
// and the remaining bits raw.
func (c *Coder) Uint(l *LengthModel, level int, v uint64) uint64 {
	n := c.length(l, middle(level), bits.Len64(v))
	if n < 2 {
		return uint64(n)
	}
	rest := uint(n - 1)
	return 1<<rest | c.Raw(v&(1<<rest-1), rest)
}

// length codes the length of a magnitude in bits: whether it exceeds at, then in unary upward or
// downward from there.
func (c *Coder) length(l *LengthModel, at, size int) int {
	n := at
	if c.Bit(&l[n], size > n) {
		for n++; n < lengths-1 && c.Bit(&l[n], size > n); n++ {
		}
		return n
	}
	for ; n > 0 && !c.Bit(&l[n-1], size > n-1); n-- {
	}
	return n
}
