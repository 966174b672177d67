package adaptive

// untrained returns the prior that training from nothing starts with: computed tables, and
// parameters set by hand.
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

// curve returns the frequencies of a table. The three sets are close to a normal distribution, with
// a longer tail, and with a long tail. Every operation is rounded separately, so that the result is
// the same on all platforms.
func curve(shape, level int) *[symbols]uint16 {
	size := float64(int64(4+level%4)<<(level/4)) / 32 // in steps, in the middle of the level
	size += float64(size / 8)
	t := student[shape]
	density := func(m float64) float64 {
		x := m / size
		return inversePower(1+float64(float64(x*x)*t.narrow), t.power)
	}
	var v [symbols]uint64
	for s := range v {
		base, extra := fromSymbol(s)
		from, width := float64(base)-0.5, float64(uint64(1)<<extra)
		if s == 0 {
			from, width = 0, 0.5
		}
		const parts = 16
		sum := 0.0
		for i := range parts {
			sum += density(from + float64(width*float64(2*i+1)/(2*parts)))
		}
		v[s] = uint64(float64(float64(sum*width) / size * (1 << 36)))
	}
	return normalize(&v, &[symbols]uint16{}, 0)
}

// student has, by set, Student's t-distributions 1/(1+narrow x^2)^power, where x is in units of the
// expected magnitude. They are wider than the levels suggest, since levels are estimates.
var student = [shapes]struct {
	narrow float64
	power  int
}{{0.027, 8}, {0.15, 3}, {0.35, 2}}

// inversePower returns 1/x^n.
func inversePower(x float64, n int) float64 {
	y := 1.0
	for range n {
		y = float64(y / x)
	}
	return y
}
