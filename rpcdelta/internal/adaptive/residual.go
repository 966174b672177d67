package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

// expectation of a residual.
type expectation struct {
	est   int64 // magnitude, Q6
	shape uint8
}

// expect reads the scale of a component; near is the magnitude of the residual
// before it in its field, or less than 0.
func (c *liveComp) expect(p *past, near int64) expectation {
	est := int64(c.scale[p.class].expected) * p.grow >> 8
	if near >= 0 {
		est = (est*3 + near*80) >> 2
	}
	return expectation{est, c.choice[p.class].shape}
}

// nearness limits what one residual says of the next.
func nearness(r int64) int64 { return min(max(r, -r), 1<<30) }

func encodeResidual(e *entropy.Encoder, t *tables, x expectation, r int64) {
	row, shift := level(x.est)
	m := uint64(max(r, -r))
	sym, n := symbolOf(m >> shift)
	n += shift
	if t.tally != nil {
		t.tally.count(x.shape%shapes, row, sym)
	}
	v := m & (1<<n - 1)
	if sym == 0 { // the sign follows only if any bit is set
		e.SymbolRaw(&t.sets[x.shape%shapes][row], sym, v, n)
		if m == 0 {
			return
		}
		e.Raw(uint64(r)>>63, 1)
		return
	}
	e.SymbolRaw(&t.sets[x.shape%shapes][row], sym, v<<1|uint64(r)>>63, n+1)
}

// decodeResidual reads a residual, below 2^62 either way.
func decodeResidual(d *entropy.Decoder, t *tables, x expectation) int64 {
	row, shift := level(x.est)
	base, n := fromSymbol(d.Symbol(&t.sets[x.shape%shapes][row]))
	n += shift
	if base == 0 {
		m := int64(d.Raw(n))
		if m != 0 && d.Raw(1) == 1 {
			return -m
		}
		return m
	}
	v := d.Raw(n + 1)
	m := int64(base<<shift | v>>1)
	sign := -int64(v & 1)
	return m ^ sign - sign
}
