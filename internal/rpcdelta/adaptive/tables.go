package adaptive

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// frequencies are the frequencies of residual symbols by set and table, in units of 1/65536.
type frequencies [shapes][levels][symbols]uint16

// tables are the frequency tables for residuals, shared by all streams of a prior. They are
// immutable, except for the tally.
type tables struct {
	sets  [shapes][levels]rangecoder.Table
	costs [levels][symbols][shapes + 1]uint16 // bits of a symbol by set, Q10; the last set is padding
	tally *tally                              // counts encoded symbols; nil unless training
}

// newTables compiles frequencies, which must be above 0 and add up to 65536.
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

// tally counts symbols of residuals by set and table.
type tally [shapes][levels][symbols]uint64

// count counts a symbol. It is not inlined, to keep the hot path of coding small.
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

// Weights of the counts of a table and of its two neighbors, in twentieths.
const (
	ownWeight      = 20
	neighborWeight = 8
)

// priorWeights are the weights of the previous frequencies, by set, in twentieths of a count. The
// first set adapts least, because it must also suit games that no recording covers.
var priorWeights = [shapes]uint64{20 * 10000, 20 * 1000, 20 * 1000}

// fit returns the frequencies of the counted symbols, smoothed with the previous frequencies.
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

// normalize returns frequencies of at least 1, in proportion to v plus the old frequencies. weight
// is the total weight of the old frequencies.
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
