package adaptive

import (
	"math"
	"math/rand/v2"
)

// ParamKinds is the number of kinds of parameters.
const ParamKinds = int(paramKinds)

// PriorHash returns the hash of an encoded prior.
func PriorHash(body []byte) uint64 { return priorHash(body) }

// Rest returns the part of an encoded prior between the tables and the hash.
func (p *Prior) Rest() []byte {
	bare := Prior{freq: p.freq} // a zero for each sort, and one for the fields
	tables := len(bare.Append(nil)) - int(paramKinds) - 1 - 8
	all := p.Append(nil)
	return all[tables : len(all)-8]
}

// ParamLengths returns the number of parameters of each kind that fields have.
func ParamLengths(fields []Field) (n [paramKinds]int) {
	m := Generic().Compile(fields)
	for i := range m.groups {
		for _, x := range m.params(i) {
			s := paramVisitor{}
			s.param(&m.initial, m, x)
			n[x.kind] = len(s.values)
		}
	}
	return n
}

// LengthMismatches returns the kinds of parameters of fields for which p has another length.
func (p *Prior) LengthMismatches(fields []Field) (bad []int) {
	for i, n := range ParamLengths(fields) {
		if v := p.kinds[i]; v != nil && n != 0 && len(v) != n {
			bad = append(bad, i)
		}
	}
	return bad
}

// RandomPrior returns an encoded prior that fits the fields and has random numbers.
func RandomPrior(r *rand.Rand, fields []Field, lengths [paramKinds]int) []byte {
	p := &Prior{freq: &frequencies{}, fields: map[uint64]fieldParams{}}
	for i := range p.freq {
		for j := range p.freq[i] {
			var v [symbols]uint64
			for s := range v {
				v[s] = r.Uint64N(1 << r.IntN(30))
			}
			p.freq[i][j] = *normalize(&v, &[symbols]uint16{}, 1)
		}
	}
	for i, n := range lengths {
		if r.IntN(2) == 0 {
			p.kinds[i] = anyNumbers(r, n)
		}
	}
	m := Generic().Compile(fields)
	for i := range m.groups {
		s, all := paramVisitor{}, m.params(i)
		for _, x := range all {
			s.param(&m.initial, m, x)
		}
		if r.IntN(2) == 0 {
			p.fields[m.groups[i].key] = fieldParams{all[0].kind, anyNumbers(r, len(s.values))}
		}
	}
	return p.Append(nil)
}

func anyNumbers(r *rand.Rand, n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		switch r.IntN(4) {
		case 0:
			v[i] = int32(r.Uint32())
		case 1:
			v[i] = []int32{math.MinInt32, math.MaxInt32, 0, -1}[r.IntN(4)]
		default:
			v[i] = int32(r.NormFloat64() * float64(int64(1)<<r.IntN(16)))
		}
	}
	return v
}
