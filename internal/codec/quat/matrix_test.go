package quat

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLowestCorner compares the corner with all eight, and its height with the extent.
func TestLowestCorner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Int64Range(-One, One)
		var q Fixed
		q.Exp(draw.Draw(t, "x"), draw.Draw(t, "y"), draw.Draw(t, "z"))
		var m Matrix
		m.Set(&q)
		for axis := range 3 {
			height := func(c [3]int64) int64 { return m[axis][0]*c[0] + m[axis][1]*c[1] + m[axis][2]*c[2] }
			low := height(m.Corner(axis))
			if low != -m.Extent(axis) {
				t.Fatalf("axis %d: the corner is at %d, want %d", axis, low, -m.Extent(axis))
			}
			for i := range int64(8) {
				if c := [3]int64{i&1*2 - 1, i&2 - 1, i&4/2 - 1}; height(c) < low {
					t.Fatalf("axis %d: corner %v is lower", axis, c)
				}
			}
		}
	})
}
