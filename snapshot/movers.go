package snapshot

import (
	"cmp"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// passed bounds how many moving objects are looked at, on either side, for the one that came closest.
const passed = 32

// movers are the places of objects that changed, by ascending first component, and the cells of space that they and
// those next to them are in.
type movers struct {
	at     [][3]int64
	hint   [3]int64 // the last one that was the nearest to something
	beyond int64    // a quarter of the square of the distance from which on nothing is near
	side   uint     // of a cell, logarithm
	marked bool     // cells are
	cells  [1 << (cellBits - 6)]uint64
}

// cellBits is the logarithm of how many cells are told apart; others are taken for one of them.
const cellBits = 14

func (m *movers) reset() { m.at, m.marked = m.at[:0], false }

// add adds one; they are in order from when cells are marked.
func (m *movers) add(place [3]int64) {
	if !m.marked {
		m.at = append(m.at, place)
		return
	}
	if len(m.at) == 0 {
		m.hint = place
	}
	m.at = slices.Insert(m.at, m.find(place[0]), place)
	m.mark(&place)
}

// spread marks the cells in which objects are near to movers: at least as near as touch says, the logarithm of a quarter
// of the square of a distance.
func (m *movers) spread(touch int64) {
	m.side = uint(fixed.Clamp(touch/(2*fixed.LogOne)+3, 0, 30))
	m.beyond = 1 << (2 * m.side)
	m.marked = true
	clear(m.cells[:])
	slices.SortFunc(m.at, func(a, b [3]int64) int { return cmp.Compare(a[0], b[0]) })
	for i := range m.at {
		m.mark(&m.at[i])
	}
	if len(m.at) > 0 {
		m.hint = m.at[0]
	}
}

// Cells are told apart by sums of multiples of these: the powers of 1/x, where x^4 = x+1, spread them evenly.
const (
	cellX = 0xd1b54a32d192ed03
	cellY = 0xabc98388fb8fac03
	cellZ = 0x8cb92ba72f3d8dd7
)

func (m *movers) cell(place *[3]int64) uint64 {
	side := m.side & 63
	return uint64(place[0]>>side)*cellX + uint64(place[1]>>side)*cellY + uint64(place[2]>>side)*cellZ
}

func (m *movers) mark(place *[3]int64) {
	at := m.cell(place) - cellX - cellY - cellZ
	for range 3 {
		row := at
		for range 3 {
			c := row
			for range 3 {
				m.cells[c>>(64-cellBits+6)] |= 1 << (c >> (64 - cellBits) & 63)
				c += cellZ
			}
			row += cellY
		}
		at += cellX
	}
}

// near says whether a mover may be near: always where one is within a cell's side.
func (m *movers) near(place *[3]int64) bool {
	c := m.cell(place)
	return m.cells[c>>(64-cellBits+6)]>>(c>>(64-cellBits)&63)&1 != 0
}

func (m *movers) find(x int64) int {
	lo, hi := 0, len(m.at)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.at[mid][0] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// closest gives a quarter of the square of the distance from place to the mover that is nearest to it, at most beyond.
// There must be one.
func (m *movers) closest(place *[3]int64) int64 {
	best, least := &m.hint, min(quarter(&m.hint, place), m.beyond)
	at := m.find(place[0])
	for i := at; i < min(len(m.at), at+passed); i++ {
		q := &m.at[i]
		if x := q[0] - place[0]; x*x>>2 >= least {
			break
		}
		if d := quarter(q, place); d < least {
			best, least = q, d
		}
	}
	for i := at - 1; i >= max(0, at-passed); i-- {
		q := &m.at[i]
		if x := q[0] - place[0]; x*x>>2 >= least {
			break
		}
		if d := quarter(q, place); d < least {
			best, least = q, d
		}
	}
	m.hint = *best
	return least
}

// quarter is a quarter of the square of a distance.
func quarter(a, b *[3]int64) int64 {
	x, y, z := a[0]-b[0], a[1]-b[1], a[2]-b[2]
	return x*x>>2 + y*y>>2 + z*z>>2
}
