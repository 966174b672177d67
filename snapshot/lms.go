package snapshot

// heaviest bounds weights.
const heaviest = 4 << 16

// terms is the most terms of a linear prediction.
const terms = 16

// linear predicts a number as a sum of weighted terms, and learns the weights by normalized least mean squares: each
// weight by the power of its own term.
type linear struct {
	weight [terms]int32 // Q16
	power  [terms]int32 // mean square of the scaled term, Q8
}

func newLinear(weights ...int32) (l linear) {
	copy(l.weight[:], weights)
	for i := range l.power {
		l.power[i] = 1 << 8
	}
	return l
}

func (l *linear) predict(x []int64) (sum int64) {
	for i, v := range x {
		sum += int64(l.weight[i]) * v
	}
	return sum >> 16
}

// learn moves the weights by 1/2^8 of the way toward what makes err zero. Terms and error count in units of scale.
func (l *linear) learn(x []int64, err, scale int64) {
	const most = 1 << 14
	inv := int64(1<<32) / max(scale, 1)
	e := int32(clamp(err*inv>>24, -most, most))
	for i, v := range x {
		if v == 0 {
			continue
		}
		s := int32(clamp(clamp(v, -1<<30, 1<<30)*inv>>24, -most, most)) // Q8
		square := s * s >> 8
		p := l.power[i]
		p += (square - p) >> 7
		l.power[i] = p
		step := e * s / (max(p, square>>4) + 16) // the product is in Q16: 1/2^8 of it in the weight's
		l.weight[i] = min(max(l.weight[i]+step, -heaviest), heaviest)
	}
}
