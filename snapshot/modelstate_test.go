package snapshot

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/schema"
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

// TestHashSeesAllOfAState flips a bit in each byte of a model state.
func TestHashSeesAllOfAState(t *testing.T) {
	s, err := NewSchema(
		Field{Name: "Burning", Class: schema.ClassInteger, N: 1, Hi: 1},
		Field{Name: "Name", Class: schema.ClassBytes, N: bytesComponents(8), Hi: 8},
	)
	if err != nil {
		t.Fatal(err)
	}
	st, set := s.newState(), s.NewSet()
	before, unseen, all := hash(set, st), 0, 0
	for i := range stateFields {
		first, n, _ := stateFields[i].elements(st)
		for k := range n * int(stateFields[i].size) {
			b := (*byte)(unsafe.Add(first, k))
			*b ^= 1
			if hash(set, st) == before {
				unseen++
			}
			all++
			*b ^= 1
		}
	}
	if unseen > all/1000 || all < 1000 { // of 65,536 hashes one is the same
		t.Errorf("the hash does not see %d of %d bytes", unseen, all)
	}
}
