package adaptive

// digest is what coding reads of a live state: a small copy, taken now and
// then, so that a payload can be coded from the state of an older baseline.
type digest struct {
	comps    []digestComp
	lists    []frequent
	groups   []digestGroup
	counters counters
}

type digestComp struct {
	choice [classes]choice
	flag   compFlag
}

// choice is how a component is coded in a class.
type choice struct {
	w      [maxUsed]int16 // of the chosen expert, Q12
	packed uint16         // scale, Q6: 5 bits of exponent, 7 of mantissa; 2 bits each of shape and expert
}

type digestGroup struct {
	groupFlag
	stepping bool // a counter that steps
}

func (m *Model) newDigest() digest {
	return digest{
		comps:    make([]digestComp, len(m.comps)),
		lists:    make([]frequent, m.lists),
		groups:   make([]digestGroup, len(m.groups)),
		counters: m.newCounters(),
	}
}

// take makes d the digest of l.
func (d *digest) take(m *Model, l *live) {
	d.counters.copy(&l.counters)
	for i := range l.lists {
		d.lists[i] = l.lists[i].frequent
	}
	for i := range m.groups {
		g := &m.groups[i]
		d.groups[i] = digestGroup{l.groups[i].groupFlag, l.groups[i].stepping()}
		if g.form == formBits {
			continue
		}
		for k := g.first; k < g.first+g.comps; k++ {
			lc, dc := &l.comps[k], &d.comps[k]
			dc.flag = lc.flag
			for cl := range classes {
				dc.choice[cl] = choose(lc, cl, g.family, l.weights[cl*m.weights+m.comps[k].weights:])
			}
		}
	}
}

func choose(lc *liveComp, class int, f family, w []int16) (c choice) {
	id := lc.best(class, f)
	e := experts[f][id]
	copy(c.w[:e.n], w[e.at:])
	c.packed = pack(lc.scale[class].expected())<<4 | uint16(lc.bestShape(class))<<2 | uint16(id)
	return c
}

// scale is the expected magnitude, Q6.
func (c *choice) scale() int64 { return unpack(c.packed >> 4) }

// shape is the table to use.
func (c *choice) shape() uint8 { return uint8(c.packed >> 2 & 3) }

// expert is the number of the expert within its family.
func (c *choice) expert() uint8 { return uint8(c.packed & 3) }

// sum folds d into h, FNV-1a.
func (d *digest) sum(h uint64) uint64 {
	for i := range d.comps {
		c := &d.comps[i]
		for j := range c.choice {
			ch := &c.choice[j]
			h = fold16(h, ch.w[:])
			h = fold(h, uint64(ch.packed))
		}
		h = fold16(fold(h, uint64(uint16(c.flag.bias))), c.flag.w[:])
	}
	for i := range d.lists {
		l := &d.lists[i]
		for j, v := range l.v {
			h = fold(h, uint64(uint32(v))<<16|uint64(l.hit[j]))
		}
		h = fold(h, uint64(l.any)<<16|uint64(l.n)<<8|bit(l.on))
	}
	for i := range d.groups {
		h = fold16(h, d.groups[i].bias[:])
		h = fold16(h, d.groups[i].w[:])
		h = fold(h, bit(d.groups[i].stepping))
	}
	return d.counters.sum(h)
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

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func fold16[T int16 | uint16](h uint64, s []T) uint64 {
	for _, v := range s {
		h = fold(h, uint64(uint16(v)))
	}
	return h
}
