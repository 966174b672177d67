package snapshot

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// maxScan bounds the number of moving objects to which closest measures the distance.
const maxScan = 64

// spatialGrid finds the nearest moving object within reach of a position. If there are more than
// maxUnlisted moving objects, it lists them by cell. The edge of a cell is twice the reach, so all
// objects within reach of a position lie in a block of eight cells. The mark of the block's lowest
// cell is set if any of the eight cells has an object.
type spatialGrid struct {
	at      [][3]int64
	next    []uint32 // 1 + index of the next object in the same list, or 0; by object
	heads   []uint32 // 1 + index of the first object of each list, or 0
	marks   []uint64 // one bit per block, by the hash of its lowest cell; blocks may share a bit
	shift   uint     // right shift from the hash of a cell to the index of its list
	low     [3]int64 // bounds of the positions that are within reach of an object
	high    [3]int64
	far     int64 // reach as a distance, rounded up
	inverse int64 // 1 / far, Q24
	reach   int64 // a quarter of the squared reach; 0 until spread sets it
	listed  bool
}

func (g *spatialGrid) reset() {
	g.at, g.next, g.listed, g.reach = g.at[:0], g.next[:0], false, 0
}

// add adds a moving object at a position.
func (g *spatialGrid) add(x, y, z int64) {
	g.at = append(g.at, [3]int64{x, y, z})
	if g.reach == 0 {
		return
	}
	g.widen(len(g.at) - 1)
	switch {
	case g.listed:
		g.list(len(g.at) - 1)
	case len(g.at) > maxUnlisted:
		g.listAll()
	}
}

// maxUnlisted is the number of moving objects up to which measuring all distances is faster than
// lists.
const maxUnlisted = 6

// spread sets the reach, given as a quarter of its square, above 0 and below 2^50.
func (g *spatialGrid) spread(reach int64) {
	g.reach, g.far = reach, int64(fixed.Sqrt(uint64(4*reach))+1)
	const most = 1 << 40
	g.low, g.high = [3]int64{most, most, most}, [3]int64{-most, -most, -most}
	for i := range g.at {
		g.widen(i)
	}
	if len(g.at) > maxUnlisted {
		g.listAll()
	}
}

// widen extends the bounds to all positions within reach of object i.
func (g *spatialGrid) widen(i int) {
	for k, v := range g.at[i] {
		g.low[k], g.high[k] = min(g.low[k], v-g.far), max(g.high[k], v+g.far)
	}
}

// outside reports whether a position is out of bounds, so no moving object is within reach.
func (g *spatialGrid) outside(x, y, z int64) bool {
	return x < g.low[0] || x > g.high[0] || y < g.low[1] || y > g.high[1] || z < g.low[2] || z > g.high[2]
}

func (g *spatialGrid) listAll() {
	g.listed = true
	g.inverse = 1 << 24 / g.far
	n := max(bits.Len(uint(len(g.at)))+1, 5)
	g.shift = uint(64 - n)
	if cap(g.heads) < 1<<n {
		g.heads, g.marks = make([]uint32, 1<<n), make([]uint64, 1<<n)
	}
	g.heads, g.marks = g.heads[:1<<n], g.marks[:1<<n]
	clear(g.heads)
	clear(g.marks)
	for i := range g.at {
		g.list(i)
	}
}

// Factors of the hash of a cell. These powers of 1/x, where x^4 = x+1, spread cells evenly.
const (
	cellX = 0xd1b54a32d192ed03
	cellY = 0xabc98388fb8fac03
	cellZ = 0x8cb92ba72f3d8dd7
)

func (g *spatialGrid) list(i int) {
	p := &g.at[i]
	h := uint64(p[0]*g.inverse>>25)*cellX + uint64(p[1]*g.inverse>>25)*cellY + uint64(p[2]*g.inverse>>25)*cellZ
	head := &g.heads[h>>(g.shift&63)]
	g.next = append(g.next, *head)
	*head = uint32(i + 1)
	for _, d := range &around {
		c := h - d
		g.marks[c>>(g.shift&63)] |= 1 << (c >> ((g.shift - markBits) & 63) & (1<<markBits - 1))
	}
}

// markBits is log2 of the number of marks per list.
const markBits = 6

// around holds the differences between the hashes of the eight cells of a block and the hash of its
// lowest cell.
var around = func() (a [8]uint64) {
	for i := range uint64(len(a)) {
		a[i] = i&1*cellX + i>>1&1*cellY + i>>2*cellZ
	}
	return a
}()

// closest returns a quarter of the squared distance from a position to the nearest moving object,
// at most reach.
func (g *spatialGrid) closest(x, y, z int64) int64 {
	if !g.listed {
		least := g.reach
		for i := range g.at {
			q := &g.at[i]
			dx, dy, dz := q[0]-x, q[1]-y, q[2]-z
			least = min(least, (dx*dx+dy*dy+dz*dz)>>2)
		}
		return least
	}
	// If the position lies in the lower half of its cell, the block begins one cell lower.
	lowest := uint64((x*g.inverse>>24-1)>>1)*cellX + uint64((y*g.inverse>>24-1)>>1)*cellY + uint64((z*g.inverse>>24-1)>>1)*cellZ
	if g.marks[lowest>>(g.shift&63)]>>(lowest>>((g.shift-markBits)&63)&(1<<markBits-1))&1 == 0 {
		return g.reach
	}
	least, left := g.reach, maxScan
	for _, d := range &around {
		for i := g.heads[(lowest+d)>>(g.shift&63)]; i != 0 && left > 0; i = g.next[i-1] {
			q := &g.at[i-1]
			dx, dy, dz := q[0]-x, q[1]-y, q[2]-z
			least = min(least, (dx*dx+dy*dy+dz*dz)>>2)
			left--
		}
	}
	return least
}

func quarterSquare(p *[3]int64, x, y, z int64) int64 {
	x, y, z = p[0]-x, p[1]-y, p[2]-z
	return x*x>>2 + y*y>>2 + z*z>>2
}
