package area

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Grid divides a plane into square cells, which are areas. It is immutable, and safe for concurrent
// use.
type Grid struct {
	first         ID
	x, y, size    float64
	columns, rows int
}

// NewGrid returns a grid of cells of a size, from the corner with the lowest coordinates (x, y), in
// the game's units. The areas are first and those after it, columns*rows of them. Positions outside
// the grid belong to the nearest cell. It returns an error if the size is not positive and finite,
// or if there are no cells or more than 2^24.
func NewGrid(first ID, x, y, size float64, columns, rows int) (*Grid, error) {
	switch {
	case !(size > 0) || math.IsInf(size, 0) || math.IsNaN(x+y) || math.IsInf(x+y, 0):
		return nil, fmt.Errorf("area: a grid from (%v, %v) with cells of %v, want finite numbers and a size above 0", x, y, size)
	case columns < 1 || rows < 1 || columns > maxCells/rows:
		return nil, fmt.Errorf("area: a grid of %d by %d cells, want 1 to %d cells", columns, rows, maxCells)
	case uint64(first)+uint64(columns*rows) > 1<<32:
		return nil, fmt.Errorf("area: %d cells from area %d on, want areas below 2^32", columns*rows, first)
	}
	return &Grid{first, x, y, size, columns, rows}, nil
}

const maxCells = 1 << 24

// At returns the cell of a position.
func (g *Grid) At(x, y float64) ID { return g.cell(g.place(x, y)) }

// Stay returns the cell of an object that was in cell before. It returns before until the object is
// farther than margin from that cell, so that an object that moves along a border does not change
// its cell repeatedly. Each change costs bandwidth.
func (g *Grid) Stay(before ID, x, y, margin float64) ID {
	if before < g.first || uint64(before) >= uint64(g.first)+uint64(g.columns*g.rows) || g.distance(before, x, y) > margin {
		return g.At(x, y)
	}
	return before
}

// Near appends the cells within a radius of a position, the nearest first.
func (g *Grid) Near(dst []ID, x, y, radius float64) []ID {
	start := len(dst)
	c0, r0 := g.place(x-radius, y-radius)
	c1, r1 := g.place(x+radius, y+radius)
	// One more on each side, because the sums are rounded.
	for r := max(r0-1, 0); r <= min(r1+1, g.rows-1); r++ {
		for c := max(c0-1, 0); c <= min(c1+1, g.columns-1); c++ {
			if id := g.cell(c, r); g.distance(id, x, y) <= radius {
				dst = append(dst, id)
			}
		}
	}
	g.sort(dst[start:], x, y)
	return dst
}

func (g *Grid) sort(cells []ID, x, y float64) {
	slices.SortFunc(cells, func(a, b ID) int {
		return cmp.Or(cmp.Compare(g.distance(a, x, y), g.distance(b, x, y)), cmp.Compare(a, b))
	})
}

// place returns column and row of a position.
func (g *Grid) place(x, y float64) (column, row int) {
	in := func(v, start float64, n int) int {
		if math.IsNaN(v) {
			return 0
		}
		return int(min(max((v-start)/g.size, 0), float64(n-1)))
	}
	return in(x, g.x, g.columns), in(y, g.y, g.rows)
}

func (g *Grid) cell(column, row int) ID { return g.first + ID(row*g.columns+column) }

// distance returns the distance from a position to a cell, 0 inside. Cells at the edge of the grid
// extend without limit.
func (g *Grid) distance(cell ID, x, y float64) float64 {
	i := int(cell - g.first)
	beyond := func(v, start float64, at, n int) float64 {
		low, high := start+float64(at)*g.size, start+float64(at+1)*g.size
		switch {
		case v < low && at > 0:
			return low - v
		case v > high && at < n-1:
			return v - high
		}
		return 0
	}
	return math.Hypot(beyond(x, g.x, i%g.columns, g.columns), beyond(y, g.y, i/g.columns, g.rows))
}

// Watch tracks the cells of a grid that a player sees: the cells within a radius of the player. A
// cell leaves only beyond a larger radius, so that a player at a border does not cause a cell to
// enter and leave all the time. Not safe for concurrent use.
type Watch struct {
	grid         *Grid
	enter, leave float64
	cells        []ID
}

// NewWatch returns a watch. Cells enter within the radius enter and leave beyond leave, which must
// not be smaller.
func NewWatch(g *Grid, enter, leave float64) (*Watch, error) {
	if !(enter >= 0 && leave >= enter) || math.IsInf(leave, 0) {
		return nil, fmt.Errorf("area: radii of %v and %v, want 0 or more, and the second not below the first", enter, leave)
	}
	return &Watch{grid: g, enter: enter, leave: leave}, nil
}

// Move moves the player and returns all cells that it sees, the nearest first. The watch owns the
// slice, which the next call changes.
func (w *Watch) Move(x, y float64) []ID {
	w.cells = slices.DeleteFunc(w.cells, func(c ID) bool { return w.grid.distance(c, x, y) > w.leave })
	kept := len(w.cells)
	w.cells = w.grid.Near(w.cells, x, y, w.enter)
	old := w.cells[:kept]
	w.cells = slices.DeleteFunc(w.cells, func(c ID) bool {
		if kept > 0 {
			kept--
			return false
		}
		return slices.Contains(old, c)
	})
	w.grid.sort(w.cells, x, y)
	return w.cells
}
