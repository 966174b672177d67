package rangecoder

const (
	// Signs is the maximum number of contexts of a sign.
	Signs   = 9 * 3 * 3
	beyonds = 16 // contexts of a mantissa
)

// Sign3 returns 0 for zero, 1 for a positive and 2 for a negative number. Contexts of signs are
// built from it.
func Sign3(v int64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return 2
	}
	return 0
}

// IntModel holds the adaptive probabilities of one kind of number. Call Init before use.
type IntModel struct {
	length   [Levels]LengthModel
	sign     [Signs]Prob
	mantissa [beyonds][8]Prob
}

// Init resets the model to its initial probabilities.
func (m *IntModel) Init() {
	for level := range m.length {
		m.length[level].Init(level)
	}
	Fill(m.sign[:], Half, 0)
	for i := range m.mantissa {
		Fill(m.mantissa[i][:], Half, 0)
	}
}

// beyond returns the context of a mantissa: the number of bits by which the magnitude exceeds the
// middle of its level.
func beyond(n, level int) int { return min(max(n-middle(level)+beyonds/2, 0), beyonds-1) }

// Levels is the number of levels of magnitude, three per octave.
const Levels = 40

// Level returns the level of an expected magnitude, given as the logarithm (Q8) of the magnitude in
// Q4.
func Level(scale int64) int { return int(min(max((scale+256)*3>>8, 0), Levels-1)) }

// middle returns the length in bits at which the unary code of a level begins.
func middle(level int) int { return (level + 1) / 3 }

// MaxLength is the maximum length of a magnitude, in bits.
const MaxLength = 32

// LengthModel holds the adaptive probabilities of the lengths of magnitudes at one level. Call Init
// before use.
type LengthModel [MaxLength + 1]Prob

// Init sets the initial probabilities. A magnitude exceeds x with probability m / (m + x), where m
// is the median magnitude of the level.
func (l *LengthModel) Init(level int) {
	// Median of the three levels of an octave, in Q8.
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
