package adaptive

// expectation is the expected distribution of a residual.
type expectation struct {
	magnitude int32 // log2 in Q10 of Q6
	shape     uint8 // set of tables
}

// expect returns the expectation for the residual of a component whose predicted offset from the
// reference is off.
func (c *componentState) expect(p *refFrames, s *residualContext, off int64) expectation {
	from, to := c.classes[p.from&1].expected, c.classes[p.from&1+1].expected
	magnitude := from + max(to-from, -200)*int32(p.share)>>8
	near, run, offset := s.inputs(magnitude, off)
	return expectation{c.context.adjust(magnitude, near, run, offset), c.classes[p.class].shape}
}

// residual codes r, which is ignored while decoding, and returns it with its magnitude. A decoded
// residual is within 2^62 of 0.
func (c *payloadCodec[M]) residual(r int64, x expectation) (int64, int32) {
	row, shift := tableFor(x.magnitude)
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
