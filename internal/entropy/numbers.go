package entropy

import "math/bits"

// Magnitudes are told apart by their length in bits, below lengths of them, under one of Levels of scale.
const (
	lengths = 33
	beyonds = 16
	// Levels of scale are three an octave.
	Levels = 40
	// Signs is how many contexts a sign may have.
	Signs = 9 * 3 * 3
)

// Level is that of a scale: the logarithm of what a magnitude, in Q4, is expected to be, in Q8.
func Level(scale int64) int { return int(min(max((scale+256)*3>>8, 0), Levels-1)) }

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

// Numbers is what was learned of one kind of number. Init makes it ready.
type Numbers struct {
	length   [Levels][lengths]Chance
	sign     [Signs]Chance
	mantissa [beyonds][8]Chance
}

// middle is the length that the decisions of a level begin at.
func middle(level int) int { return (level + 1) / 3 }

// Init starts from magnitudes x of which half are below the level's m, and m/(m+x) above x.
func (m *Numbers) Init() {
	for lv := range m.length {
		// Three levels an octave, in Q8.
		mid := []int64{72, 90, 114}[lv%3] << (lv / 3) * 2
		longer := func(k int) int64 { return mid * 65536 / (mid + 256<<k - 128) }
		for k := range m.length[lv] {
			p := longer(k)
			switch at := middle(lv); {
			case k > at:
				p = p * 65536 / max(longer(k-1), 1)
			case k < at:
				p = (p - longer(k+1)) * 65536 / (65536 - longer(k+1))
			}
			m.length[lv][k] = Chance{uint16(min(max(p, 200), 65336)), 10}
		}
	}
	Fill(m.sign[:], Half, 0)
	for i := range m.mantissa {
		Fill(m.mantissa[i][:], Half, 0)
	}
}

// Number codes v, of at most 32 bits, under a level of scale, below [Levels], and a context of its sign, below [Signs].
func (c *Coder) Number(m *Numbers, level int, sign int, v int64) int64 {
	size := bits.Len64(uint64(max(v, -v)))
	n := c.length(&m.length[level], middle(level), size)
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

// length codes how many bits a magnitude has: whether more than at, and from there on up or down whether it is the next.
func (c *Coder) length(row *[lengths]Chance, at, size int) int {
	n := at
	if c.Bit(&row[n], size > n) {
		for n++; n < lengths-1 && c.Bit(&row[n], size > n); n++ {
		}
		return n
	}
	for ; n > 0 && !c.Bit(&row[n-1], size > n-1); n-- {
	}
	return n
}

// mantissa codes the low n bits of v, whose bit n is set: the first three adapt.
func (c *Coder) mantissa(m *[8]Chance, n uint, v uint64) uint64 {
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
