package residual

import "math"

// Flags is an ideal adaptive code of flags, each with one of four contexts. The zero value has learned nothing.
type Flags struct{ seen [4][2]float64 }

// recent is how many flags of a context count.
const recent = 255

// Bits is what a flag takes.
func (f *Flags) Bits(context int, yes bool) float64 {
	n := &f.seen[context&3]
	return -math.Log2((n[index(yes)] + .5) / (n[0] + n[1] + 1))
}

// Learn learns what a flag was.
func (f *Flags) Learn(context int, yes bool) {
	n := &f.seen[context&3]
	n[index(yes)]++
	if n[0]+n[1] > recent {
		n[0] /= 2
		n[1] /= 2
	}
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}
