package statesync

import "math/bits"

// heaviest bounds weights.
const heaviest = 4 << 16

// most bounds what is learned from, in Q8.
const most = 1 << 14

// inverses are 2^24 / d for d from 256 to 511.
var inverses = func() (t [256]int64) {
	for i := range t {
		t[i] = 1 << 24 / int64(256+i)
	}
	return t
}()

// inverse gives m and s with v/d = v*m >> s, to 1/256 of it. m has 17 bits at most, d is above 0.
func inverse(d int64) (m int64, s uint) {
	n := uint(bits.Len64(uint64(d)))
	if n >= 9 {
		return inverses[uint64(d)>>(n-9)&255], 15 + n
	}
	return inverses[uint64(d)<<(9-n)&255], 15 + n
}

// guessTerms is the most terms of a prediction.
const guessTerms = 6

// linear predicts a number as a sum of weighted terms, and learns the weights by normalized least mean squares: each
// weight by the power of its own term.
type linear struct {
	weight [guessTerms]int32 // Q16
	power  [guessTerms]int32 // mean square of the scaled term, Q8
}

func newLinear(weights ...int32) (l linear) {
	copy(l.weight[:], weights)
	for i := range l.power {
		l.power[i] = 1 << 8
	}
	return l
}

// predict gives the sum of weighted terms, of less than 42 bits each.
func (l *linear) predict(x *[guessTerms]int64) (sum int64) {
	for i, v := range x {
		sum += int64(l.weight[i]) * v
	}
	return sum >> 16
}

// learn moves the weights by 1/2^7 of the way toward what makes err zero. Terms and error count in units of scale.
func (l *linear) learn(x *[guessTerms]int64, err, scale int64) {
	inv, shift := inverse(scale)
	shift -= 8
	e := clamp(clamp(err, -1<<30, 1<<30)*inv>>shift, -most, most)
	for i, v := range x {
		if v == 0 {
			continue
		}
		s := clamp(clamp(v, -1<<30, 1<<30)*inv>>shift, -most, most) // Q8
		m, n := gain(&l.power[i], s)
		l.weight[i] = heavier(l.weight[i], e, m, n)
	}
}

// gain updates the mean square of a term s, and gives by what an error moves its weight: e*m >> n.
func gain(power *int32, s int64) (m int64, n uint) {
	square := int32(s * s >> 8)
	p := *power
	p += (square - p) >> 6
	*power = p
	m, n = inverse(int64(max(p, square>>4) + 16))
	return s * m, n - 1 // the product of two in Q8 is in Q16: 1/2^7 of it in the weight's
}

func heavier(w int32, e, m int64, n uint) int32 {
	return int32(clamp(int64(w)+(e*m+1<<(n-1))>>n, -heaviest, heaviest))
}

// scaleTerms is how many terms the scales of a field's components share.
const scaleTerms = 8

// scales predict the logarithms of what the predictions of a field's components will miss by: each from the terms that all
// share and from what those before it missed by.
type scales struct {
	weight [3][scaleTerms]int32
	missed [3]int32
	power  [scaleTerms]int32
	spread [3]int32 // the power of what the ones before missed by
}

func newScales(missed int32, weights ...int32) (l scales) {
	for k := range l.weight {
		copy(l.weight[k][:], weights)
		l.missed[k], l.spread[k] = missed, 1<<8
	}
	for i := range l.power {
		l.power[i] = 1 << 8
	}
	return l
}

// scaling is a use of scales for one object.
type scaling struct {
	of    *scales
	y     [scaleTerms]int32
	gain  [scaleTerms]int64
	shift [scaleTerms]uint
	last  int64 // what the ones before missed by
}

// open readies the use of scales for terms.
func (u *scaling) open(l *scales, y *[scaleTerms]int64) {
	u.of = l
	for i, v := range y {
		if u.y[i] = int32(v); v != 0 {
			u.gain[i], u.shift[i] = gain(&l.power[i], v)
		}
	}
}

// predict gives component k's scale, where those before it missed by last.
func (u *scaling) predict(k int, last int64) int64 {
	u.last = last
	sum := int64(u.of.missed[k]) * last
	for i, v := range u.y {
		sum += int64(u.of.weight[k][i]) * int64(v)
	}
	return sum >> 16
}

// learn moves component k's weights toward what makes err zero.
func (u *scaling) learn(k int, err int64) {
	e, w := clamp(err, -most, most), &u.of.weight[k]
	for i := range w {
		if u.y[i] != 0 {
			w[i] = heavier(w[i], e, u.gain[i], u.shift[i])
		}
	}
	if u.last != 0 {
		m, n := gain(&u.of.spread[k], u.last)
		u.of.missed[k] = heavier(u.of.missed[k], e, m, n)
	}
}
