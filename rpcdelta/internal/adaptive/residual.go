package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

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

// encodeResidual gives the magnitude of r, as decodeResidual does.
func encodeResidual(e *entropy.Encoder, t *tables, x expectation, r int64) int32 {
	row, shift := level(x.at)
	m := uint64(max(r, -r))
	sym, n := symbolOf(m >> shift)
	n += shift
	if t.tally != nil {
		t.tally.count(x.shape, row, sym)
	}
	v := m & (1<<n - 1)
	size := magnitudes[sym&(symbols-1)] + int32(shift<<10)
	if sym == 0 { // the sign follows only if any bit is set
		e.SymbolRaw(&t.sets[x.shape][row], sym, v, n)
		if m != 0 {
			e.Raw(uint64(r)>>63, 1)
		}
		return size
	}
	e.SymbolRaw(&t.sets[x.shape][row], sym, v<<1|uint64(r)>>63, n+1)
	return size
}

// decodeResidual reads a residual, below 2^62 either way, and its magnitude.
func decodeResidual(d *entropy.Decoder, t *tables, x expectation) (r int64, size int32) {
	row, shift := level(x.at)
	sym := d.Symbol(&t.sets[x.shape][row])
	base, n := fromSymbol(sym)
	n += shift
	size = magnitudes[sym&(symbols-1)] + int32(shift<<10)
	if base == 0 {
		m := int64(d.Raw(n))
		if m != 0 && d.Raw(1) == 1 {
			return -m, size
		}
		return m, size
	}
	v := d.Raw(n + 1)
	m := int64(base<<shift | v>>1)
	sign := -int64(v & 1)
	return m ^ sign - sign, size
}
