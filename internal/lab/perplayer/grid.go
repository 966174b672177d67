package perplayer

import (
	"cmp"
	"slices"
	"sort"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// maxScan bounds the number of moving objects that closest examines in each direction.
const maxScan = 32

// spatialGrid is the positions of moving objects, and the set of cells within one cell of them.
type spatialGrid struct {
	at     [][3]int64
	hint   [3]int64 // nearest object of the previous search
	beyond int64    // quarter of the squared distance at which search ends
	side   uint     // log2 of the size of a cell
	marked bool     // cells is valid and at is sorted
	cells  [1 << (cellBits - 6)]uint64
}

// cellBits is log2 of the number of cells. Cells further apart may share a bit.
const cellBits = 14

func (g *spatialGrid) reset() { g.at, g.marked = g.at[:0], false }

// add adds a moving object. Before spread the order is arbitrary.
func (g *spatialGrid) add(position [3]int64) {
	if !g.marked {
		g.at = append(g.at, position)
		return
	}
	if len(g.at) == 0 {
		g.hint = position
	}
	g.at = slices.Insert(g.at, g.find(position[0]), position)
	g.mark(&position)
}

// spread sorts the objects and marks the cells near them. touch, log2 of a quarter of a squared
// distance, determines the size of the cells.
func (g *spatialGrid) spread(touch int64) {
	g.side = uint(fixed.Clamp(touch/(2*fixed.LogOne)+3, 0, 30))
	g.beyond = 1 << (2 * g.side)
	g.marked = true
	clear(g.cells[:])
	slices.SortFunc(g.at, func(a, b [3]int64) int { return cmp.Compare(a[0], b[0]) })
	for i := range g.at {
		g.mark(&g.at[i])
	}
	if len(g.at) > 0 {
		g.hint = g.at[0]
	}
}

// Factors of the hash of a cell. These powers of 1/x, where x^4 = x+1, spread cells evenly.
const (
	cellX = 0xd1b54a32d192ed03
	cellY = 0xabc98388fb8fac03
	cellZ = 0x8cb92ba72f3d8dd7
)

func (g *spatialGrid) cell(position *[3]int64) uint64 {
	side := g.side & 63
	return uint64(position[0]>>side)*cellX + uint64(position[1]>>side)*cellY + uint64(position[2]>>side)*cellZ
}

// around has the differences of the hashes of a cell's neighbors from that of the lowest one.
var around = func() (a [27]uint64) {
	for i := range uint64(len(a)) {
		a[i] = i/9*cellX + i/3%3*cellY + i%3*cellZ
	}
	return a
}()

func (g *spatialGrid) mark(position *[3]int64) {
	lowest := g.cell(position) - cellX - cellY - cellZ
	for _, d := range around {
		c := lowest + d
		g.cells[c>>(64-cellBits+6)] |= 1 << (c >> (64 - cellBits) & 63)
	}
}

// near reports whether a moving object may be near. It is true if one is within the size of a cell.
func (g *spatialGrid) near(position *[3]int64) bool {
	c := g.cell(position)
	return g.cells[c>>(64-cellBits+6)]>>(c>>(64-cellBits)&63)&1 != 0
}

func (g *spatialGrid) find(x int64) int {
	return sort.Search(len(g.at), func(i int) bool { return g.at[i][0] >= x })
}

// closest returns a quarter of the squared distance from position to the nearest moving object, at
// most beyond. The grid must not be empty.
func (g *spatialGrid) closest(position *[3]int64) int64 {
	best, least := &g.hint, min(quarterSquare(&g.hint, position), g.beyond)
	closer := func(q *[3]int64) bool {
		x := q[0] - position[0]
		if x*x>>2 >= least {
			return false
		}
		if d := quarterSquare(q, position); d < least {
			best, least = q, d
		}
		return true
	}
	at := g.find(position[0])
	for i := at; i < min(len(g.at), at+maxScan) && closer(&g.at[i]); i++ {
	}
	for i := at - 1; i >= max(0, at-maxScan) && closer(&g.at[i]); i-- {
	}
	g.hint = *best
	return least
}

func quarterSquare(a, b *[3]int64) int64 {
	x, y, z := a[0]-b[0], a[1]-b[1], a[2]-b[2]
	return x*x>>2 + y*y>>2 + z*z>>2
}
