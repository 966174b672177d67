package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

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
