package area_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/area"
)

func ExampleWatch() {
	grid, err := area.NewGrid(1, 0, 0, 10, 20, 20) // 400 cells of 10 by 10 m
	if err != nil {
		panic(err)
	}
	watch, err := area.NewWatch(grid, 3, 5)
	if err != nil {
		panic(err)
	}
	fmt.Println(watch.Move(15, 15))
	fmt.Println(watch.Move(18, 15)) // the next cell is within 3 m
	fmt.Println(watch.Move(16, 15)) // 4 m: it stays
	fmt.Println(watch.Move(14, 15))
	// Output:
	// [22]
	// [22 23]
	// [22 23]
	// [22]
}

// TestGrid checks that the cells near a position are those in which an object stays, and that they
// include its own.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, rows := rapid.IntRange(1, 9).Draw(t, "columns"), rapid.IntRange(1, 9).Draw(t, "rows")
		g, err := area.NewGrid(5, -3, 2, 2, columns, rows)
		if err != nil {
			t.Fatal(err)
		}
		x, y := rapid.Float64Range(-30, 30).Draw(t, "x"), rapid.Float64Range(-30, 30).Draw(t, "y")
		radius := rapid.Float64Range(0, 8).Draw(t, "radius")
		got := g.Near(nil, x, y, radius)
		if len(got) == 0 || g.Stay(got[0], x, y, 0) != got[0] {
			t.Fatalf("the nearest of %v is not the cell of (%v, %v)", got, x, y)
		}
		for c := range columns * rows {
			id := area.ID(5 + c)
			in := slices.Contains(got, id)
			if !in && g.At(x, y) == id {
				t.Fatalf("the cell %d of (%v, %v) itself is missing", id, x, y)
			}
			if in != (g.Stay(id, x, y, radius) == id) {
				t.Fatalf("cell %d: within %v: %t", id, radius, in)
			}
		}
	})
}
