package adaptive

// expectation of a residual.
type expectation struct {
	at    int32 // magnitude, log2 in Q10 of Q6
	shape uint8
}

// expect reads the scale of a component whose prediction leads off from the
// reference.
func (c *liveComp) expect(p *past, s *surprise, off int64) expectation {
	from, to := c.in[p.from&1].expected, c.in[p.from&1+1].expected
	at := from + max(to-from, -200)*int32(p.grown)>>8
	near, run, way := s.contexts(at, off)
	return expectation{c.lean.lean(at, near, run, way), c.in[p.class].shape}
}

// residual codes r under x and returns its magnitude too.
func (c *payloadCodec[M]) residual(r int64, x expectation) (int64, int32) {
	row, shift := level(x.at)
	table := &c.m.tables.sets[x.shape][row]
	if c.decodes() {
		sym := c.dec.Symbol(table)
		base, n := fromSymbol(sym)
		n += shift
		size := magnitudes[sym&(symbols-1)] + int32(shift<<10)
		if base == 0 { // the sign follows only if any bit is set
			m := int64(c.dec.Raw(n))
			if m != 0 && c.dec.Raw(1) == 1 {
				return -m, size
			}
			return m, size
		}
		v := c.dec.Raw(n + 1)
		m := int64(base<<shift | v>>1)
		sign := -int64(v & 1)
		return m ^ sign - sign, size
	}
	m := uint64(max(r, -r))
	sym, n := symbolOf(m >> shift)
	n += shift
	if t := c.m.tables.tally; t != nil {
		t.count(x.shape, row, sym)
	}
	v := m & (1<<n - 1)
	size := magnitudes[sym&(symbols-1)] + int32(shift<<10)
	if sym == 0 {
		c.enc.SymbolRaw(table, sym, v, n)
		if m != 0 {
			c.enc.Raw(uint64(r)>>63, 1)
		}
		return r, size
	}
	c.enc.SymbolRaw(table, sym, v<<1|uint64(r)>>63, n+1)
	return r, size
}
