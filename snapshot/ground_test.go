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
		var was, is quat.Matrix
		for range 6000 {
			q := quat.Exp([3]int64{next(4*quat.One) - 2*quat.One, next(4*quat.One) - 2*quat.One, next(4*quat.One) - 2*quat.One})
			was, is = is, quat.MatrixOf(&q)
			from, to := ground+half*was.Extent(2)>>quat.Shift, ground+half*is.Extent(2)>>quat.Shift
			if next(100) < int64(others) {
				from, to = from+next(40*half), to+next(40*half)
			}
			s.learn(s.above(&was, 2, from), to-from, is.Extent(2)-was.Extent(2))
		}
		if off := fixed.Abs(int64(s.half) - half); off > half/16+minHalf {
			t.Fatalf("learned a half size of %d, want %d", s.half, half)
		}
		if off := fixed.Abs(s.floor - ground - half); off > half/4 {
			t.Fatalf("learned a ground at %d, want %d", s.floor-half, ground)
		}
	})
}
