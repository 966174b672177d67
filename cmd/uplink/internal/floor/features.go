package floor

import (
	"github.com/uplink-rpc/uplink/schema"
)

// features are what component k of f is predicted from at frame n: its own past
// and its neighbors', all that the fields coded before it show, and what its
// derivative says. y is its offset from the reference.
func (s *series) features(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	x = append(x[:0], 1)
	if f.kind == schema.KindQuat {
		x, y = s.turns(f, k, n, x)
	} else {
		y = s.diff(f, f.at+k, n, b)
		for j := range f.n {
			for _, lag := range []int{1, 2, 4, s.d, 2 * s.d} {
				x = append(x, s.diff(f, f.at+j, b, b-lag))
			}
		}
		for j := range k {
			x = append(x, s.diff(f, f.at+j, n, b))
		}
		if v := f.velocity; v != nil {
			w := f.factor * float64(s.d)
			at := v.at + k
			x = append(x, w*s.rows[n][at], w*s.rows[b][at], w*s.diff(v, at, b, b-1), w*s.diff(v, at, b, b-s.d))
		}
	}
	for i := range s.fields {
		g := &s.fields[i]
		if g.name == f.name {
			break
		}
		x = s.shown(f, g, n, x)
	}
	return x, y
}

// shown appends what field g, coded before f, shows.
func (s *series) shown(f, g *field, n int, x []float64) []float64 {
	b := n - s.d
	switch g.kind {
	case schema.KindQuat, schema.KindFixed, schema.KindBytes:
	case schema.KindBits, schema.KindBool, schema.KindUint, schema.KindInt:
		for j := range g.n {
			if g.kind == schema.KindBits {
				for bit := range 8 {
					x = append(x, float64(int64(s.rows[n][g.at+j])>>bit&1))
				}
				continue
			}
			x = append(x, s.rows[n][g.at+j], s.rows[b][g.at+j])
		}
	default:
		for j := range g.n {
			x = append(x, s.diff(g, g.at+j, n, b), s.diff(g, g.at+j, b, b-1))
			if g.kind == schema.KindScalar || f.kind == schema.KindAngle {
				x = append(x, s.rows[n][g.at+j])
			}
		}
	}
	return x
}
