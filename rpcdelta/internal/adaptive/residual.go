package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

// expectation of a residual.
type expectation struct {
	est   int64 // magnitude, Q6
	shape uint8
}

// expect reads the scale of a component; near is the magnitude of the residual
// before it in its field, or less than 0.
func (c *choice) expect(grow, near int64) expectation {
	est := c.scale() * grow >> 8
	if near >= 0 {
		est = (est*3 + near*80) >> 2
	}
	return expectation{est, c.shape()}
}

// nearness limits what one residual says of the next.
func nearness(r int64) int64 { return min(max(r, -r), 1<<30) }

func encodeResidual(e *entropy.Encoder, x expectation, r int64) {
	row, shift := level(x.est)
	m := uint64(max(r, -r))
	sym, extra := symbolOf(m >> shift)
	e.Symbol(&tables[x.shape%shapes][row], sym)
	if m == 0 && shift == 0 {
		return
	}
	n := extra + shift
	v := m & (1<<n - 1)
	if m>>shift == 0 { // the sign follows only if any bit is set
		e.Raw(v, n)
		v, n = 0, 0
	}
	if m == 0 {
		return
	}
	v <<= 1
	if r < 0 {
		v |= 1
	}
	e.Raw(v, n+1)
}

// decodeResidual reads a residual, below 2^62 either way.
func decodeResidual(d *entropy.Decoder, x expectation) int64 {
	row, shift := level(x.est)
	base, extra := fromSymbol(d.Symbol(&tables[x.shape%shapes][row]))
	n := extra + shift
	if base == 0 {
		if shift == 0 {
			return 0
		}
		m := int64(d.Raw(n))
		if m != 0 && d.Raw(1) == 1 {
			return -m
		}
		return m
	}
	v := d.Raw(n + 1)
	m := int64(base<<shift | v>>1)
	if v&1 == 1 {
		return -m
	}
	return m
}
