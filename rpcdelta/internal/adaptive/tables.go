package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/entropy"
)

// frequencies are those of residuals' symbols, of 65536, by shape and level.
type frequencies [shapes][levels][symbols]uint16

// tables code residuals. They are shared by all streams of a prior, and so
// immutable.
type tables struct {
	sets  [shapes][levels]entropy.Table
	costs [levels][symbols][shapes + 1]uint16 // bits, Q10; the last is padding
	tally *tally                              // counts what is encoded, in training only
}

// newTables compiles frequencies, each above 0, whose sums are 65536.
func newTables(f *frequencies) *tables {
	t := &tables{}
	for i := range f {
		for j := range f[i] {
			t.sets[i][j].Set(&f[i][j])
			for s, n := range f[i][j] {
				t.costs[j][s][i] = uint16(16<<10 - log2(int64(n)-1))
			}
		}
	}
	return t
}

// tally counts residuals' symbols by shape and level.
type tally [shapes][levels][symbols]uint64

// count counts a symbol. It is kept out of the way of coding, which counts nothing.
//
//go:noinline
func (t *tally) count(shape uint8, level, sym int) { t[shape][level][sym]++ }

func (t *tally) add(o *tally) {
	for i := range t {
		for j := range t[i] {
			for k := range t[i][j] {
				t[i][j][k] += o[i][j][k]
			}
		}
	}
}

// In twentieths of a count: those of a level, and of the levels beside it.
const (
	ownWeight      = 20
	neighborWeight = 8
)

// oldWeights are how much the frequencies weigh that were there before, likewise. The
// first set yields least: it is to suit games that training did not see.
var priorWeights = [shapes]uint64{20 * 10000, 20 * 1000, 20 * 1000}

// fit gives the frequencies of what was counted, smoothed by those that were
// there before.
func (t *tally) fit(old *frequencies) *frequencies {
	f := &frequencies{}
	for i := range t {
		for j := range t[i] {
			var v [symbols]uint64
			t.addWeighted(&v, i, j, ownWeight)
			t.addWeighted(&v, i, j-1, neighborWeight)
			t.addWeighted(&v, i, j+1, neighborWeight)
			f[i][j] = *normalize(&v, &old[i][j], priorWeights[i])
		}
	}
	return f
}

func (t *tally) addWeighted(v *[symbols]uint64, shape, level int, weight uint64) {
	if level < 0 || level >= levels {
		return
	}
	for s, n := range t[shape][level] {
		v[s] += weight * n
	}
}

// spread turns weights, and old frequencies of some weight, into frequencies of at least 1.
func normalize(v *[symbols]uint64, old *[symbols]uint16, weight uint64) *[symbols]uint16 {
	total := weight
	for _, n := range v {
		total += n
	}
	var f [symbols]uint16
	left, best := 1<<16, 0
	for s := range f {
		hi, lo := bits.Mul64(v[s]<<16+weight*uint64(old[s]), 1<<16-symbols)
		q, _ := bits.Div64(hi, lo, total<<16)
		f[s] = 1 + uint16(q)
		left -= int(f[s])
		if f[s] > f[best] {
			best = s
		}
	}
	f[best] += uint16(left)
	return &f
}
