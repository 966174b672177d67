package adaptive

const skip = 9

var (
	single  = [21]int{2, skip, skip, 1, skip, skip, 2, skip, skip, 1, skip, skip, 0, skip, skip, 2, skip, skip, 1, skip, skip}
	several = [14]int{2, skip, 1, skip, 0, skip, 1, skip, 0, skip, 2, skip, 0, skip}
)

// learnFrame learns frame n. size and repeats are of the payload whose newest frame it was; size is
// 0 if there is none.
func (e *stream) learnFrame(n, size int64, repeats bool) {
	s := e.state
	for i := int64(1); i <= min(size, 15); i++ {
		toward(s.more(i), i == size)
	}
	if size > 0 {
		s.last = size
	}
	if size > 1 {
		toward(&s.none[s.repeated], !repeats)
		s.repeated = truth(repeats)
	}
	c := single[s.accepted%21]
	if s.last > 1 {
		c = several[s.accepted%14]
	}
	if c != skip {
		e.study(n, c)
	}
	s.accepted++
}

// study is the learning of one frame: l is its class, x the context of its residuals.
type study struct {
	*state
	r    *references
	l    int
	x    residuals
	fast bool // of the group's flags
}

func (e *stream) study(n int64, l int) {
	known := func(t int64) *frame {
		if t < n-24 || t > n {
			return nil
		}
		return e.known[t]
	}
	gapFrom, gapTo := int64(1), int64(0)
	if last := e.state.last; l == 0 && last > 1 && e.state.accepted/14%(last-1) == 0 {
		gapFrom, gapTo = n-4, n-2
	}
	d := [3]int64{1, 4, 8}[l]
	for b := n - d; b > n-2*d; b-- {
		if r := newReferences(e.m, known, n, b, gapFrom, gapTo); r != nil {
			t := study{state: e.state, r: r, l: l}
			t.frame(e.known[n])
			return
		}
	}
}

func (t *study) frame(f *frame) {
	var flag, buttons bool
	for i, g := range t.m.groups {
		gs := &t.groups[i]
		changed := g.str && string(f.bytes[g.blob]) != string(t.r.b.bytes[g.blob])
		for k := g.at; k < g.at+g.n; k++ {
			changed = changed || f.ints[k] != t.r.b.ints[k]
		}
		x := t.r.groupInputs(g, flag, buttons)
		if g.counter {
			changed = t.counter(g, gs, f, changed)
		}
		if t.fast = gs.uses <= 16; t.fast {
			gs.uses++
		}
		t.flag(&gs.bias[t.l], &gs.w, x, changed)
		flag = changed
		switch {
		case g.bitset && changed:
			t.bits(g, gs, f.ints)
			buttons = true
		case g.str && changed:
			learnString(gs, f.bytes[g.blob], t.r.b.bytes[g.blob], t.r.prev[g.blob])
		case g.bitset, g.str:
		case g.Kind == "quat":
			t.quat(g, gs, f.ints, changed)
		default:
			t.numbers(g, f.ints, changed)
		}
	}
}

func (t *study) counter(g *field, gs *groupState, f *frame, moved bool) (changed bool) {
	follows := true
	for _, c := range g.components {
		follows = follows && f.ints[c.at] == t.r.next(c)
	}
	if changed = moved; gs.steps > 2048 {
		changed = !follows
	}
	gs.steps += (4096*truth(follows && moved) - gs.steps) / 16
	return changed
}

func (t *study) flag(bias *int64, w *[4]int64, x inputs, outcome bool) {
	e := 65536*truth(outcome) - t.m.chance(*bias, w, x)
	shift := 7 - truth(t.fast)
	step := (e + 1<<(shift-1)) >> shift
	*bias = clamp(*bias+step, -20000, 20000)
	for i, set := range x {
		w[i] = clamp(w[i]+step*truth(set), -20000, 20000)
	}
}

func (t *study) bits(g *field, gs *groupState, ints []int64) {
	for k, w := range g.widths {
		at := g.at + int64(k)
		for j := range w {
			toward(&gs.bit[k][j][t.r.context(at, j)], (ints[at]^t.r.b.ints[at])>>j&1 == 0)
		}
	}
}

func learnString(gs *groupState, x, b, p []byte) {
	before := int64(0)
	for i := range min(len(x), len(b)) {
		old := truth(i >= len(p) || p[i] != b[i])
		v := x[i] ^ b[i]
		toward(&gs.same[before+2*old], v == 0)
		before = truth(v != 0)
		high := int64(0)
		for j := int64(7); j >= 0 && v != 0; j-- {
			set := v>>j&1 == 1
			toward(&gs.sameBit[2*j+high], !set)
			high |= truth(set)
		}
	}
}

func (t *study) fade(c *component) {
	y := &t.components[c.index].classes[t.l]
	y.recent -= y.recent >> 3
	y.derive()
}

func (t *study) quat(g *field, gs *groupState, ints []int64, changed bool) {
	if !changed {
		for _, c := range g.components {
			t.fade(c)
		}
		return
	}
	q, t0, t1 := t.m.turns(t.r, g, ints)
	order, ambiguity := likely(t0)
	toward(&gs.index[ambiguity], ints[g.at] == order[0])
	base, f := chart(q, t0, t1, ints[g.at], g.hi)
	t.x.near = 0
	for k, c := range g.components {
		t.trial(c, &f[k], ints[c.at]-base[k])
	}
}

func (t *study) numbers(g *field, ints []int64, changed bool) {
	var last, some bool
	t.x.near = 0
	for k, c := range g.components {
		y, b := &t.components[c.index], t.r.b.ints[c.at]
		offset := wrap(ints[c.at]-b, c.w)
		if changed && len(g.components) > 1 && (some || k < len(g.components)-1) {
			t.flag(&y.flagBias, &y.flagW, t.r.componentInputs(c, last), offset != 0)
		}
		last = offset != 0
		some = some || last
		if !last {
			t.fade(c)
			continue
		}
		f := t.r.features(c, ints)
		r := t.trial(c, &f, offset)
		if g.family == "plain" && t.l > 0 {
			y.learn(ints[c.at], b, r)
		}
	}
}

// rates are the steps of weights, by family.
var rates = map[string][10]int64{
	"plain":        {26, 26, 26, 26, 26, 26},
	"angled":       {26, 26, 26, 26, 26, 26, 110, 110, 110, 110},
	"derived":      {3, 3, 11, 11},
	"turned":       {3},
	"extrapolated": {16, 16},
}

// trial learns the offset of a component and returns the residual of the expert in use.
func (t *study) trial(c *component, f *[9]int64, offset int64) int64 {
	y := &t.components[c.index]
	z := &y.classes[t.l]
	rate := rates[c.f.family]
	var errors [4]int64
	for e := range expertCount[c.f.family] {
		v := offset<<4 - (z.sum(c.f.family, int64(e), f)+2048)>>12
		if c.w > 0 {
			v = wrap(v, c.w+4)
		}
		errors[e] = v
		for _, k := range terms[c.f.family][e] {
			switch x := f[k[1]]; {
			case x == 0 || v == 0:
			case x < 0 == (v < 0):
				z.weight[k[0]] = clamp(z.weight[k[0]]+rate[k[0]], -32000, 32000)
			default:
				z.weight[k[0]] = clamp(z.weight[k[0]]-rate[k[0]], -32000, 32000)
			}
		}
		z.cost[e] += (min(logOf(abs(v)), 31744) - z.cost[e]) >> 4
	}
	v := errors[z.expert]
	r := v >> 4
	near, run, o := t.x.terms(z.expected, offset-r)
	at := t.x.lean(y, z.expected, offset-r)
	row, shift := tableOf(at)
	sym := symbolOf(int64(uint64(abs(r))>>shift)) & 63
	for i := range z.shapeCost {
		z.shapeCost[i] += (t.bitsOf(int64(i), row, sym) - z.shapeCost[i]) >> 5
	}
	gain := t.bitsOf(z.shape, max(row-2, 0), sym) - t.bitsOf(z.shape, min(row+2, 47), sym)
	for i, x := range [3]int64{near, run, o} {
		y.lean[i] = clamp(y.lean[i]+(gain*x*2+32768)>>16, -4096, 8192)
	}
	t.x.observe(t.m.t.Size[sym]+shift<<10, at)
	a := min(abs(v), 67108864) << 4
	z.fast += (min(a, 8*z.fast+2048) - z.fast) / 4
	z.slow += (min(a, 8*z.slow+2048) - z.slow) / 24
	z.recent = a
	z.derive()
	return r
}

func (t *study) bitsOf(shape, row, sym int64) int64 {
	return 16384 - logOf(t.m.t.Prior.Frequencies[shape][row][sym]-1)
}

// learn learns value v of a component, whose residual is r. b is its value in the reference.
func (y *componentState) learn(v, b, r int64) {
	at := int64(-1)
	for i := range y.n {
		if y.value[i] == v {
			at = i
		}
	}
	if at < 0 {
		y.gain += (logOf(65535-y.any) - 16384 - y.gain) >> 5
		y.asks = y.gain > 0
		y.any -= y.any >> 5
		switch {
		case y.n < 6:
			y.value[y.n], y.count[y.n] = v, 1
			y.n++
		case y.count[5] > 1:
			y.count[5]--
		default:
			y.value[5], y.count[5] = v, 1
		}
		return
	}
	y.gain += (logOf(abs(r)) + 1600 + logOf(y.any) - 16384 - 1100 - y.gain) >> 5
	y.asks = y.gain > 0
	y.any += (65500 - y.any) >> 5
	for j := range at {
		if y.value[j] != b {
			y.rank[j] -= y.rank[j] >> 5
		}
	}
	y.rank[at] += (65500 - y.rank[at]) >> 5
	if y.count[at] += 2; y.count[at] > 200 {
		for i := range y.count {
			y.count[i] = (y.count[i] + 1) / 2
		}
	}
	if at > 0 && y.count[at] > y.count[at-1] {
		y.value[at], y.value[at-1] = y.value[at-1], y.value[at]
		y.count[at], y.count[at-1] = y.count[at-1], y.count[at]
	}
}
