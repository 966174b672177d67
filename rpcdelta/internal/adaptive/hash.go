package adaptive

// sum folds l into h, FNV-1a over 64 bits at a time.
func (l *modelState) hash(h uint64) uint64 {
	h = fold(h, l.accepted)
	for i := range l.components {
		h = l.components[i].hash(h)
	}
	for i := range l.inputs {
		for class := range classes {
			h = fold16(h, l.inputs[i][class][:])
		}
	}
	for i := range l.lists {
		h = l.lists[i].hash(h)
	}
	for i := range l.groups {
		g := &l.groups[i]
		h = fold16(h, g.bias[:])
		h = fold16(h, g.w[:])
		h = fold(h, uint64(g.uses)<<16|uint64(uint16(g.stepRate)))
	}
	return l.bitModels.hash(h)
}

// sum leaves out what follows from the rest.
func (c *componentState) hash(h uint64) uint64 {
	for class := range c.classes {
		s := &c.classes[class]
		h = fold(h, uint64(uint32(s.fast))<<32|uint64(uint32(s.slow)))
		h = fold(h, uint64(uint32(s.last))<<32|uint64(uint16(s.shapeCosts[0])))
		h = fold(h, uint64(uint16(s.shapeCosts[1]))<<16|uint64(uint16(s.shapeCosts[2])))
		h = fold16(h, s.expertCosts[:])
		h = fold16(h, s.w[:])
	}
	h = fold(h, uint64(uint16(c.context.near))<<32|uint64(uint16(c.context.run))<<16|uint64(uint16(c.context.offset)))
	h = fold(h, uint64(uint16(c.flag.bias))<<16|uint64(uint16(c.flag.w[0])))
	return fold16(h, c.flag.w[1:])
}

func (l *valueList) hash(h uint64) uint64 {
	for i, v := range l.values {
		h = fold(h, uint64(uint32(v))<<32|uint64(l.rankProb[i])<<16|uint64(l.count[i]))
	}
	return fold(h, uint64(l.anyProb)<<32|uint64(uint16(l.gain))<<16|uint64(l.n))
}

func (c *bitModels) hash(h uint64) uint64 {
	for i := range c.index {
		h = fold16(h, c.index[i][:])
	}
	for i := range c.bits {
		h = fold16(h, c.bits[i][:])
	}
	for i := range c.bytes {
		h = fold16(h, c.bytes[i].unchanged[:])
		h = fold16(h, c.bytes[i].bitUnchanged[:])
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
