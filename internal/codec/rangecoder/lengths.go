package rangecoder

import "math/bits"

// Levels is how many steps of scale are told apart, three an octave.
const Levels = 40

// Level is that of a scale: the logarithm of what a magnitude, in Q4, is expected to be, in Q8.
func Level(scale int64) int { return int(min(max((scale+256)*3>>8, 0), Levels-1)) }

// middle is the length that the decisions of a level begin at.
func middle(level int) int { return (level + 1) / 3 }

// lengths is one more than the bits of the longest magnitude.
const lengths = 33

// LengthModel is what was learned of how many bits the magnitudes about one scale have. Init makes it ready.
type LengthModel [lengths]Prob

// Init starts from magnitudes x of which half are below the level's m, and m/(m+x) above x.
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

// Uint codes v, of at most 32 bits: its length by chances that began at the level, all else as it is.
func (c *Coder) Uint(l *LengthModel, level int, v uint64) uint64 {
	n := c.length(l, middle(level), bits.Len64(v))
	if n < 2 {
		return uint64(n)
	}
	rest := uint(n - 1)
	return 1<<rest | c.Raw(v&(1<<rest-1), rest)
}

// length codes how many bits a magnitude has: whether more than at, and from there on up or down whether it is the next.
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
