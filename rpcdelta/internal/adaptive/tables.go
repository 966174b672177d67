package adaptive

import "github.com/uplink-rpc/uplink/internal/entropy"

// tables are the cumulative frequencies of residuals' symbols by shape and
// level; costs their bits, Q10.
var (
	tables [shapes][levels]entropy.Table
	costs  [levels][symbols][shapes + 1]uint16 // the last is padding
)

func init() { loadTables() }

func loadTables() {
	for i := range trained {
		for j := range trained[i] {
			tables[i][j].Set(&trained[i][j])
			for s, f := range trained[i][j] {
				costs[j][s][i] = uint16(16<<10 - log2(int64(f)-1))
			}
		}
	}
}
