package adaptive

// slots carries numbers out of a learned state, or into it, in a fixed order.
// Whatever they are, the state that they make is a valid one.
type slots struct {
	values []int32
	load   bool // from values into the state; they must be as many as come out
}

// next passes a number on, within lo and hi.
func (s *slots) next(x, lo, hi int32) int32 {
	if !s.load {
		s.values = append(s.values, x)
		return x
	}
	x = s.values[0]
	s.values = s.values[1:]
	return max(lo, min(hi, x))
}

func slot[T int16 | uint16 | uint8](s *slots, p *T, lo, hi int32) { *p = T(s.next(int32(*p), lo, hi)) }

// chance passes on a chance that moves by 1/32: it never leaves these bounds.
func (s *slots) chance(p *uint16) { slot(s, p, 31, 65500) }

// visit passes on one piece of a state.
func (s *slots) visit(l *live, m *Model, x place) {
	switch x.piece {
	case pieceList:
		s.list(&l.lists[x.at])
	case pieceValues:
		s.frequent(&l.lists[x.at], &m.comps[x.of])
	case pieceTurn, pieceExtend:
		for i := range l.counters.index[x.at] {
			s.chance(&l.counters.index[x.at][i])
		}
	case pieceBit:
		for i := range l.counters.bits[x.at] {
			s.chance(&l.counters.bits[x.at][i])
		}
	case pieceBlob:
		b := &l.counters.blobs[x.at]
		for i := range b.stay {
			s.chance(&b.stay[i])
		}
		for i := range b.bit {
			s.chance(&b.bit[i])
		}
	case pieceScale:
		for cl := range classes {
			s.scale(&l.comps[x.at].in[cl].scale)
		}
		w := &l.comps[x.at].lean
		slot(s, &w.near, leastLean, mostLean)
		slot(s, &w.run, leastLean, mostLean)
		slot(s, &w.way, leastLean, mostLean)
	case pieceAge:
		most := int32(0)
		if m.groups[x.at].counts {
			most = 4096
		}
		slot(s, &l.groups[x.at].seen, 0, 17)
		slot(s, &l.groups[x.at].steps, 0, most)
	default:
		if x.piece >= pieceWeights {
			s.comp(l, m, x)
			return
		}
		g := &l.groups[x.at]
		for i := range g.bias {
			s.flag(&g.bias[i])
		}
		for i := range g.w {
			s.flag(&g.w[i])
		}
	}
}

func (s *slots) flag(w *int16) { slot(s, w, -20000, 20000) }

// comp passes on a piece of a component.
func (s *slots) comp(l *live, m *Model, x place) {
	c := &l.comps[x.at]
	if x.piece >= pieceCompFlag {
		s.flag(&c.flag.bias)
		for k := range c.flag.w {
			s.flag(&c.flag.w[k])
		}
		return
	}
	f := (x.piece - pieceWeights) % piece(families)
	for cl := range c.in {
		in := &c.in[cl]
		if x.piece < pieceCosts {
			for k := range weightCount[f] {
				slot(s, &in.w[k], -32000, 32000)
			}
			if d := m.comps[x.at].drive; d >= 0 {
				for k := range l.drives[d][cl] {
					slot(s, &l.drives[d][cl][k], -32000, 32000)
				}
			}
			continue
		}
		for e := range expertCount[f] {
			slot(s, &in.costs[e], 0, 31<<10)
		}
		for k := range in.shapes {
			slot(s, &in.shapes[k], 0, 31<<10)
		}
		in.choose()
	}
}

// scale passes on logarithms, so that means of them mean something. The last
// magnitude starts as the slow mean.
func (s *slots) scale(c *scale) {
	c.fast = fromLog(s.next(log2(int64(c.fast)), 0, 30<<10))
	c.slow = fromLog(s.next(log2(int64(c.slow)), 0, 30<<10))
	if s.load {
		c.last = c.slow
		c.settle()
	}
}

// fromLog is the inverse of log2, rounded down.
func fromLog(x int32) int32 {
	e := uint(x) >> 10
	return int32((1024+int64(x)&1023)<<e>>10 - 1)
}

// list passes on the chances of frequent values.
func (s *slots) list(l *valueList) {
	s.chance(&l.any)
	for i := range l.hit {
		s.chance(&l.hit[i])
	}
	slot(s, &l.gain, -16<<10, 16<<10)
}

// frequent passes on the values and how often they came; those that the
// component cannot have are left out.
func (s *slots) frequent(l *valueList, c *comp) {
	if !s.load {
		for i, v := range l.v {
			n := int32(0)
			if i < int(l.n) {
				n = int32(l.count[i])
			}
			s.values = append(s.values, v, n)
		}
		return
	}
	l.n = 0
	for range l.v {
		v, n := s.values[0], min(s.values[1], 200)
		s.values = s.values[2:]
		if n > 0 && c.fit(int64(v)) == v && l.find(v) < 0 {
			l.v[l.n], l.count[l.n] = v, uint8(n)
			l.n++
		}
	}
	l.on = l.n > 0 && l.gain > 0
}
