package adaptive

// sum folds l into h, FNV-1a over 64 bits at a time.
func (l *live) sum(h uint64) uint64 {
	h = fold(h, l.taken)
	for i := range l.comps {
		h = l.comps[i].sum(h)
	}
	for i := range l.drives {
		for class := range classes {
			h = fold16(h, l.drives[i][class][:])
		}
	}
	for i := range l.lists {
		h = l.lists[i].sum(h)
	}
	for i := range l.groups {
		g := &l.groups[i]
		h = fold16(h, g.bias[:])
		h = fold16(h, g.w[:])
		h = fold(h, uint64(g.seen)<<16|uint64(uint16(g.steps)))
	}
	return l.counters.sum(h)
}

// sum leaves out what follows from the rest.
func (c *liveComp) sum(h uint64) uint64 {
	for class := range c.in {
		s := &c.in[class]
		h = fold(h, uint64(uint32(s.fast))<<32|uint64(uint32(s.slow)))
		h = fold(h, uint64(uint32(s.last))<<32|uint64(uint16(s.shapes[0])))
		h = fold(h, uint64(uint16(s.shapes[1]))<<16|uint64(uint16(s.shapes[2])))
		h = fold16(h, s.costs[:])
		h = fold16(h, s.w[:])
	}
	h = fold(h, uint64(uint16(c.lean.near))<<32|uint64(uint16(c.lean.run))<<16|uint64(uint16(c.lean.way)))
	h = fold(h, uint64(uint16(c.flag.bias))<<16|uint64(uint16(c.flag.w[0])))
	return fold16(h, c.flag.w[1:])
}

func (l *valueList) sum(h uint64) uint64 {
	for i, v := range l.v {
		h = fold(h, uint64(uint32(v))<<32|uint64(l.hit[i])<<16|uint64(l.count[i]))
	}
	return fold(h, uint64(l.any)<<32|uint64(uint16(l.gain))<<16|uint64(l.n))
}

func (c *counters) sum(h uint64) uint64 {
	for i := range c.index {
		h = fold16(h, c.index[i][:])
	}
	for i := range c.bits {
		h = fold16(h, c.bits[i][:])
	}
	for i := range c.blobs {
		h = fold16(h, c.blobs[i].stay[:])
		h = fold16(h, c.blobs[i].bit[:])
	}
	return h
}

func fold(h, v uint64) uint64 { return (h ^ v) * 1099511628211 }

// fold16 folds four values at a time, the first lowest.
func fold16[T int16 | uint16](h uint64, s []T) uint64 {
	for ; len(s) >= 4; s = s[4:] {
		h = fold(h, uint64(uint16(s[0]))|uint64(uint16(s[1]))<<16|uint64(uint16(s[2]))<<32|uint64(uint16(s[3]))<<48)
	}
	for _, v := range s {
		h = fold(h, uint64(uint16(v)))
	}
	return h
}
