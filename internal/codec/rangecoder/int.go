package rangecoder

import "math/bits"

const (
	// Signs is how many contexts a sign may have.
	Signs   = 9 * 3 * 3
	beyonds = 16 // contexts of a mantissa
)

// Sign3 is 0 for zero, 1 for what is above, 2 for what is below it: a part of a sign's context.
func Sign3(v int64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return 2
	}
	return 0
}

// IntModel is what was learned of one kind of number. Init makes it ready.
type IntModel struct {
	length   [Levels]LengthModel
	sign     [Signs]Prob
	mantissa [beyonds][8]Prob
}

// Init starts from nothing learned.
func (m *IntModel) Init() {
	for level := range m.length {
		m.length[level].Init(level)
	}
	Fill(m.sign[:], Half, 0)
	for i := range m.mantissa {
		Fill(m.mantissa[i][:], Half, 0)
	}
}

// Int codes v, of at most 32 bits, under a level of scale, below [Levels], and a context of its sign, below [Signs].
func (c *Coder) Int(m *IntModel, level, sign int, v int64) int64 {
	return c.IntWith(m, &m.length[level], level, sign, v)
}

// IntWith is Int for one whose length has chances of its own, that began at the level.
func (c *Coder) IntWith(m *IntModel, l *LengthModel, level, sign int, v int64) int64 {
	size := bits.Len64(uint64(max(v, -v)))
	n := c.length(l, middle(level), size)
	if n == 0 {
		return 0
	}
	negative := c.Bit(&m.sign[sign], v < 0)
	mag := uint64(1)
	if n > 1 {
		mag = c.mantissa(&m.mantissa[beyond(n, level)], uint(n-1), uint64(max(v, -v)))
	}
	if negative {
		return -int64(mag)
	}
	return int64(mag)
}

// mantissa codes the low n bits of v, whose bit n is set: the first three adapt.
func (c *Coder) mantissa(m *[8]Prob, n uint, v uint64) uint64 {
	node := uint64(1)
	for n > 0 && node < 8 {
		n--
		node <<= 1
		if c.Bit(&m[node>>1], v>>n&1 != 0) {
			node |= 1
		}
	}
	if n > 0 {
		node = node<<n | c.Raw(v&(1<<n-1), n)
	}
	return node
}

// beyond is the context of a mantissa: how much longer the magnitude is than its level has them.
func beyond(n, level int) int { return min(max(n-middle(level)+beyonds/2, 0), beyonds-1) }

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
