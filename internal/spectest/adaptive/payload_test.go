package adaptive

import "slices"

// stream is one end: the accepted frames, by sequence, and the state.
type stream struct {
	m            *model
	state, start *state
	known        map[int64]*frame
	ring         int64
}

// decode decodes a payload; base is -1 without a baseline.
func (e *stream) decode(d *coder, newest, base int64) (out []*frame, repeats bool) {
	s, limit := e.state, int64(16)
	if base < 0 {
		s = e.start
	} else {
		limit = min(limit, newest-base)
	}
	n := int64(1)
	for n < limit && d.decide0(*s.more(n)) {
		n++
	}
	if n > 1 {
		repeats = d.decide0(s.none[s.repeated])
	}
	d.fail(base < 0 && n > newest+1)
	first := newest - n + 1
	known := func(t int64) *frame {
		switch i := t - first; {
		case i >= 0 && i < int64(len(out)):
			return out[i]
		case i >= 0 || base < 0 || t > base || t <= newest-e.ring:
			return nil
		}
		return e.known[t]
	}
	b := base
	for seq := first; seq <= newest; seq++ {
		if b < 0 {
			out = append(out, e.m.keyframe(d))
		} else {
			out = append(out, s.codeFrame(d, newReferences(e.m, known, seq, b, base+1, first-1)))
		}
		b = seq
	}
	return out, repeats
}

// more returns the chance that a payload with i frames has no more.
func (s *state) more(i int64) *int64 {
	context := truth(s.last >= i) + truth(s.last > i)
	return &s.enough[context][i-1]
}

func length(d *coder, g *field) int64 {
	n := g.minBytes
	if g.minBytes < g.maxBytes {
		n += d.raw(bitlen(g.maxBytes - g.minBytes))
		d.fail(n > g.maxBytes)
	}
	return n
}

func flat(d *coder, w int64) int64 {
	switch {
	case !d.decide0(32768):
		return 0
	case w > 1:
		return d.raw(w)
	}
	return 1
}

func (m *model) keyframe(d *coder) *frame {
	f := &frame{make([]int64, m.ints), make([][]byte, m.blobs)}
	for _, g := range m.groups {
		switch {
		case g.Kind == "angle":
			for _, c := range g.components {
				f.ints[c.at] = flat(d, c.w)
			}
		case g.bitset:
			for k, w := range g.widths {
				f.ints[g.at+int64(k)] = wrap(flat(d, w), 32)
			}
		case g.Kind == "quat":
			f.ints[g.at] = d.raw(2)
			for _, c := range g.components {
				f.ints[c.at] = d.raw(bitlen(2*g.hi)) - g.hi
				d.fail(f.ints[c.at] > g.hi)
			}
		case g.str:
			for range length(d, g) {
				f.bytes[g.blob] = append(f.bytes[g.blob], byte(d.raw(8)))
			}
		default:
			keyframeNumbers(d, g, f.ints)
		}
	}
	return f
}

func keyframeNumbers(d *coder, g *field, ints []int64) {
	size := int64(0)
	for _, c := range g.components {
		if c.w > 0 {
			size = max(size, c.w)
		} else {
			size = max(size, bitlen(max(c.hi, -c.lo, 0)))
		}
	}
	n := d.raw(bitlen(size))
	d.fail(n > size)
	for _, c := range g.components {
		v := d.raw(n)
		if (g.Kind == "int" || !g.counter && g.lo < 0) && v > 0 && d.decide0(32768) {
			v = -v
		}
		ints[c.at] = c.fit(v)
		d.fail(c.number(ints[c.at]) != v)
	}
}

func (s *state) codeFrame(d *coder, r *references) *frame {
	f := &frame{slices.Clone(r.b.ints), slices.Clone(r.b.bytes)}
	var x residuals
	var flag, buttons bool
	for i, g := range s.m.groups {
		gs := &s.groups[i]
		flag = d.decide1(s.m.chance(gs.bias[r.class], &gs.w, r.groupInputs(g, flag, buttons)))
		switch {
		case !flag && g.counter && gs.steps > 2048:
			for _, c := range g.components {
				f.ints[c.at] = r.next(c)
			}
		case !flag:
		case g.Kind == "quat":
			s.codeQuat(d, r, g, &x, f.ints)
		case g.str:
			f.bytes[g.blob] = codeString(d, g, gs, r.b.bytes[g.blob], r.prev[g.blob])
		case g.bitset:
			codeBits(d, g, gs, r, f.ints)
			buttons = true
		default:
			s.codeNumbers(d, r, g, &x, f.ints)
		}
	}
	return f
}

func (s *state) codeNumbers(d *coder, r *references, g *field, x *residuals, ints []int64) {
	var last, some bool
	x.near = 0
	for k, c := range g.components {
		y, b := &s.components[c.index], r.b.ints[c.at]
		if len(g.components) > 1 && (some || k < len(g.components)-1) {
			if last = d.decide1(s.m.chance(y.flagBias, &y.flagW, r.componentInputs(c, last))); !last {
				continue
			}
		}
		if g.family == "plain" && y.asks && d.decide1(y.any) {
			ints[c.at], some = y.frequent(d, b), true
			continue
		}
		f := r.features(c, ints)
		forecast, magnitude, shape := s.predict(r, c, x, &f, b)
		v := s.residual(d, x, magnitude, shape)
		ints[c.at] = c.fit(forecast + v)
		d.fail(wrap(ints[c.at]-forecast, c.w) != v)
		some = some || ints[c.at] != b
	}
}

func (y *componentState) frequent(d *coder, b int64) int64 {
	end := y.n - 1
	if end >= 0 && y.value[end] == b {
		end--
	}
	for i := range end {
		if y.value[i] != b && d.decide1(y.rank[i]) {
			return y.value[i]
		}
	}
	return y.value[max(end, 0)]
}

// context returns the context of bit j of a component of a bit set.
func (r *references) context(at, j int64) int64 {
	v := r.b.ints[at] >> j & 1
	return v + 2*(v^r.h1.ints[at]>>j&1)
}

func codeBits(d *coder, g *field, gs *groupState, r *references, ints []int64) {
	for k, w := range g.widths {
		at := g.at + int64(k)
		for j := range w {
			if d.decide0(gs.bit[k][j][r.context(at, j)]) {
				ints[at] = wrap(ints[at]^1<<j, 32)
			}
		}
	}
}

func codeString(d *coder, g *field, gs *groupState, b, p []byte) (x []byte) {
	n := int64(len(b))
	if g.minBytes < g.maxBytes && d.decide0(57000) {
		n = length(d, g)
	}
	before := int64(0)
	for i := range n {
		if i >= int64(len(b)) {
			x = append(x, byte(d.raw(8)))
			continue
		}
		old := truth(i >= int64(len(p)) || p[i] != b[i])
		before = truth(d.decide0(gs.same[before+2*old]))
		v, high := b[i], int64(0)
		for j := int64(7); j >= 0 && before == 1; j-- {
			if d.decide0(gs.sameBit[2*j+high]) {
				v, high = v^1<<j, 1
			}
		}
		x = append(x, v)
	}
	return x
}
