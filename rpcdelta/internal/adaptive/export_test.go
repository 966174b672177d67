package adaptive

import (
	"math"
	"math/rand/v2"
)

// Pieces is the number of sorts of piece.
const Pieces = int(pieces)

// PriorHash is the hash that ends a prior's file.
func PriorHash(body []byte) uint64 { return priorHash(body) }

// Rest is the part of the file between tables and hash.
func (p *Prior) Rest() []byte {
	bare := Prior{freq: p.freq} // a zero for each sort, and one for the fields
	tables := len(bare.Append(nil)) - int(pieces) - 1 - 8
	all := p.Append(nil)
	return all[tables : len(all)-8]
}

// PieceLengths gives how many numbers each sort of piece has that fields have.
func PieceLengths(fields []Field) (n [pieces]int) {
	m := Generic().Compile(fields, 60)
	for i := range m.groups {
		for _, x := range m.piecesOf(i) {
			s := slots{}
			s.visit(&m.first, m, x)
			n[x.piece] = len(s.values)
		}
	}
	return n
}

// Misfits lists the pieces of fields for which p has another length.
func (p *Prior) Misfits(fields []Field) (bad []int) {
	for i, n := range PieceLengths(fields) {
		if v := p.sorts[i]; v != nil && n != 0 && len(v) != n {
			bad = append(bad, i)
		}
	}
	return bad
}

// RandomPrior is the file of a prior that fits the fields and has any numbers.
func RandomPrior(r *rand.Rand, fields []Field, lengths [pieces]int) []byte {
	p := &Prior{freq: &frequencies{}, fields: map[uint64]known{}}
	for i := range p.freq {
		for j := range p.freq[i] {
			var v [symbols]uint64
			for s := range v {
				v[s] = r.Uint64N(1 << r.IntN(30))
			}
			p.freq[i][j] = *spread(&v, &[symbols]uint16{}, 1)
		}
	}
	for i, n := range lengths {
		if r.IntN(2) == 0 {
			p.sorts[i] = wild(r, n)
		}
	}
	m := Generic().Compile(fields, 60)
	for i := range m.groups {
		s, all := slots{}, m.piecesOf(i)
		for _, x := range all {
			s.visit(&m.first, m, x)
		}
		if r.IntN(2) == 0 {
			p.fields[m.groups[i].key] = known{all[0].piece, wild(r, len(s.values))}
		}
	}
	return p.Append(nil)
}

func wild(r *rand.Rand, n int) []int32 {
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
