package snapshot

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// TestSizeOfCubes learns the size of cubes that tumble on the ground, among others in flight.
func TestSizeOfCubes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.Int64Range(200, 1<<16).Draw(t, "half")
		ground := rapid.Int64Range(-1<<24, 1<<24).Draw(t, "ground")
		others := rapid.IntRange(0, 30).Draw(t, "others") // of 100
		random := rapid.Uint64().Draw(t, "seed")
		next := func(n int64) int64 {
			random = random*6364136223846793005 + 1442695040888963407
			return int64(random>>33) % n
		}
		s := size{floor: ground + half, half: minHalf}
		var was, is matrix
		for range 6000 {
			q := quat.Exp([3]int64{next(4*quat.One) - 2*quat.One, next(4*quat.One) - 2*quat.One, next(4*quat.One) - 2*quat.One})
			was, is = is, matrixOf(&q)
			from, to := ground+half*was.extent(2)>>quat.Shift, ground+half*is.extent(2)>>quat.Shift
			if next(100) < int64(others) {
				from, to = from+next(40*half), to+next(40*half)
			}
			s.learn(s.above(&was, 2, from), to-from, is.extent(2)-was.extent(2))
		}
		if off := fixed.Abs(int64(s.half) - half); off > half/16+minHalf {
			t.Fatalf("learned a half size of %d, want %d", s.half, half)
		}
		if off := fixed.Abs(s.floor - ground - half); off > half/4 {
			t.Fatalf("learned a ground at %d, want %d", s.floor-half, ground)
		}
	})
}

// TestLowestCorner compares the corner with all eight, and its height with the extent.
func TestLowestCorner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Int64Range(-quat.One, quat.One)
		q := quat.Exp([3]int64{draw.Draw(t, "x"), draw.Draw(t, "y"), draw.Draw(t, "z")})
		m := matrixOf(&q)
		for axis := range 3 {
			height := func(c [3]int64) int64 { return m[axis][0]*c[0] + m[axis][1]*c[1] + m[axis][2]*c[2] }
			low := height(m.corner(axis))
			if low != -m.extent(axis) {
				t.Fatalf("axis %d: the corner is at %d, want %d", axis, low, -m.extent(axis))
			}
			for i := range int64(8) {
				if c := [3]int64{i&1*2 - 1, i&2 - 1, i&4/2 - 1}; height(c) < low {
					t.Fatalf("axis %d: corner %v is lower", axis, c)
				}
			}
		}
	})
}
