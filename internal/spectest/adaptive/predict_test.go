package adaptive

// frame is the components and byte strings of a frame.
type frame struct {
	ints  []int64
	bytes [][]byte
}

// references are the frames that predict (section 7).
type references struct {
	b, h1, h2, h4, hd, hdd *frame
	prev                   [][]byte
	d                      int64
	r1, r12, r24, rd, rdd  int64
	class, from, low, high int64
	share                  int64
}

// newReferences returns the references of frame s against frame b, or nil if that is not known. The
// sequences from gapFrom to gapTo are the gap.
func newReferences(m *model, known func(int64) *frame, s, b, gapFrom, gapTo int64) *references {
	r := &references{b: known(b), d: s - b}
	if r.b == nil {
		return nil
	}
	gap := func(t int64) bool { return t >= gapFrom && t <= gapTo }
	search := func(from int64, f *frame, to int64) (*frame, int64, int64) {
		if gap(to) {
			to = gapFrom - 1
		}
		for t := to; t > to-16; t-- {
			if x := known(t); x != nil {
				i := min(from-t, 64)
				return x, t, r.d * ((65536 + i/2) / i)
			}
		}
		return f, from, 0
	}
	var s1, s2, sd int64
	r.h1, s1, r.r1 = search(b, r.b, b-1)
	r.h2, s2, r.r12 = search(s1, r.h1, s1-1)
	r.h4, _, r.r24 = search(s2, r.h2, s2-2)
	if r.d == 1 {
		r.hd, r.rd, r.hdd, r.rdd = r.h1, r.r1, r.h2, r.r12
	} else {
		r.hd, sd, r.rd = search(b, r.b, b-r.d)
		r.hdd, _, r.rdd = search(sd, r.hd, sd-r.d)
	}
	r.prev = r.b.bytes
	if p := known(b - 1); p != nil && !gap(b-1) {
		r.prev = p.bytes
	}
	switch {
	case r.d >= 6:
		r.class = 2
	case r.d >= 2:
		r.class = 1
	}
	r.from, r.share = truth(r.d > 4), m.t.Share[min(r.d, 64)]
	r.low, r.high = r.from, r.from+1
	if r.share == 0 {
		r.high = r.from
	} else if r.share >= 256 {
		r.low = r.from + 1
	}
	return r
}

// next returns the value of a counter that steps.
func (r *references) next(c *component) int64 {
	b := r.b.ints[c.at]
	return c.fit(b + (wrap(b-r.h1.ints[c.at], c.w)*r.r1+32768)>>16)
}

type inputs [4]bool

func (r *references) groupInputs(g *field, flag, buttons bool) inputs {
	x := inputs{2: flag, 3: buttons}
	if g.str {
		x[0] = string(r.b.bytes[g.blob]) != string(r.prev[g.blob])
	}
	for i := g.at; i < g.at+g.n; i++ {
		x[0] = x[0] || r.b.ints[i] != r.h1.ints[i]
		x[1] = x[1] || r.b.ints[i] != r.hd.ints[i]
	}
	return x
}

func (r *references) componentInputs(c *component, last bool) inputs {
	return inputs{r.b.ints[c.at] != r.h1.ints[c.at], r.b.ints[c.at] != r.hd.ints[c.at], last, false}
}

func (m *model) chance(bias int64, w *[4]int64, x inputs) int64 {
	for i, set := range x {
		bias += w[i] * truth(set)
	}
	return m.t.Squash[(clamp(bias, -16384, 16383)+16384)>>6]
}

// features returns f0 to f8, or mean, bend and lead.
func (r *references) features(c *component, now []int64) (f [9]int64) {
	at := func(x *frame) int64 { return x.ints[c.at] }
	if c.f.family == "derived" {
		v := c.f.velocityAt + c.k
		b, n, h, step := r.b.ints[v], now[v], r.h1.ints[v], r.d*c.f.factor
		f[0] = (b + n) * step >> 16
		f[1] = ((((n-b)<<16 - (b-h)*r.r1) >> 4) * (step / 3)) >> 28
		f[2] = (n - b) * step >> 16
		return f
	}
	f[0] = (wrap(at(r.b)-at(r.h1), c.w) * r.r1) >> 12
	f[1] = (wrap(at(r.hd)-at(r.hdd), c.w) * r.rdd) >> 12
	f[2] = (wrap(at(r.h1)-at(r.h2), c.w) * r.r12) >> 12
	f[3] = (wrap(at(r.b)-at(r.hd), c.w) * r.rd) >> 12
	f[4] = (wrap(at(r.h2)-at(r.h4), c.w) * r.r24) >> 12
	for i, y := range c.f.scalars {
		f[5+2*i], f[6+2*i] = (now[y]*r.d)<<6, (r.b.ints[y]*r.d)<<6
	}
	return f
}

// terms are the weights and features of each expert, by family.
var terms = map[string][][][2]int{
	"plain":        {{}, {{0, 0}}, {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}}},
	"angled":       {{}, {{0, 0}}, {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}}, {{6, 5}, {7, 6}, {8, 7}, {9, 8}}},
	"derived":      {{{0, 0}}, {{1, 0}, {2, 1}, {3, 2}}},
	"turned":       {{{0, 0}}},
	"extrapolated": {{}, {{0, 0}}, {{1, 1}}},
}

func (y *class) sum(family string, expert int64, f *[9]int64) (s int64) {
	for _, t := range terms[family][expert] {
		s += y.weight[t[0]] * f[t[1]]
	}
	return s
}

// residuals is the context of residuals in a frame.
type residuals struct{ near, run int64 }

func (x *residuals) terms(m, offset int64) (n, r, o int64) {
	if x.near != 0 {
		n = clamp(x.near-m, -4096, 4096)
	}
	return n, x.run, clamp(logOf(abs(offset)<<6+19)-m, -4096, 4096)
}

func (x *residuals) lean(y *componentState, m, offset int64) int64 {
	n, r, o := x.terms(m, offset)
	return max(3072, m+(n*y.lean[0]+r*y.lean[1]+o*y.lean[2])>>12)
}

func (x *residuals) observe(size, m int64) {
	x.near = size
	x.run += (clamp(size-m, -3072, 3072) - x.run) >> 2
}

func tableOf(m int64) (row, shift int64) {
	if row = (m - 3072) >> 8; row >= 48 {
		shift = (row-48)/4 + 1
		row -= 4 * shift
	}
	return row, shift
}

// predict returns the forecast of c from base, the magnitude of its residual and the set of tables.
func (s *state) predict(r *references, c *component, x *residuals, f *[9]int64, base int64) (forecast, magnitude, shape int64) {
	y := &s.components[c.index]
	low, high := &y.classes[r.low], &y.classes[r.high]
	a, b := low.sum(c.f.family, low.expert, f), high.sum(c.f.family, high.expert, f)
	offset := (a + ((b-a)>>8)*r.share + 32768) >> 16
	from, to := y.classes[r.from].expected, y.classes[r.from+1].expected
	m := from + (max(to-from, -200)*r.share)>>8
	return c.fit(base + offset), x.lean(y, m, offset), y.classes[r.class].shape
}

func symbolOf(v int64) int64 {
	if v < 2 {
		return v
	}
	e := bitlen(v) - 1
	return 2*e + v>>(e-1)&1
}

func (s *state) residual(d *coder, x *residuals, magnitude, shape int64) int64 {
	row, shift := tableOf(magnitude)
	sym := d.symbol(&s.m.t.Prior.Frequencies[shape][row], shape, row)
	low, extra := sym, int64(0)
	if sym >= 2 {
		extra = sym/2 - 1
		low = 1<<(sym/2) | sym%2<<extra
	}
	n := extra + shift
	var v, negative int64
	if sym == 0 {
		if v = d.raw(n); v != 0 {
			negative = d.raw(1)
		}
	} else {
		u := d.raw(n + 1)
		v, negative = low<<shift|int64(uint64(u)>>1), u&1
	}
	x.observe(s.m.t.Size[sym]+shift<<10, magnitude)
	if negative == 1 {
		return -v
	}
	return v
}
