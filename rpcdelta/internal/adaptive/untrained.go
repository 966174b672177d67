package adaptive

// untrained is the prior that training from nothing begins with: curves for
// tables, and hand-set starts.
func untrained() *Prior {
	f := &frequencies{}
	for i := range f {
		for j := range f[i] {
			f[i][j] = *curve(i, j)
		}
	}
	p, err := ParsePrior((&Prior{freq: f}).Append(nil))
	if err != nil {
		panic("adaptive: the untrained prior: " + err.Error())
	}
	return p
}

// curve gives the frequencies of a residual of that shape whose magnitude is
// that of the level: like a normal distribution, like an exponential one, and with
// a long tail. Each operation is rounded by itself, for the same bits everywhere.
func curve(shape, level int) *[symbols]uint16 {
	size := float64(int64(4+level%4)<<(level/4)) / 32 // steps, in the middle of the level
	size += float64(size / 8)
	tail := func(m float64) float64 { // that a magnitude is at least m
		if m <= 0 {
			return 1
		}
		x := m / size
		switch shape {
		case 0:
			return power(1+float64(float64(float64(x*x)*0.8)/8), 8)
		case 1:
			return power(1+float64(x/8), 8)
		}
		return power(1+float64(x/2), 3)
	}
	var v [symbols]uint64
	for s := range v {
		base, extra := fromSymbol(s)
		from, to := float64(base)-0.5, float64(base+1<<extra)-0.5
		v[s] = uint64(float64((tail(from) - tail(to)) * (1 << 40)))
	}
	return spread(&v, &[symbols]uint16{})
}

// power is 1/x^n.
func power(x float64, n int) float64 {
	y := 1.0
	for range n {
		y = float64(y / x)
	}
	return y
}
