package rowpack_test

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/rowpack"
)

// TestLayout checks that rows of any bounds are the same after packing, in memory that was used
// before, and that the packed form is one number, the first component lowest, with zeros beyond.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 128).Draw(t, "components")
		most := rapid.SampledFrom([]int{1, 8, 32}).Draw(t, "width")
		var lows, highs, row []int32
		var want []bool // bits
		for range n {
			low, width := rapid.Int32().Draw(t, "low"), rapid.IntRange(0, most).Draw(t, "bits")
			spread := uint32(1)<<width - 1
			if width > 0 {
				spread = rapid.Uint32Range(1<<(width-1), spread).Draw(t, "spread")
			}
			d := rapid.Uint32Max(spread).Draw(t, "difference")
			lows, highs, row = append(lows, low), append(highs, low+int32(spread)), append(row, low+int32(d))
			for k := range bits.Len32(spread) {
				want = append(want, d>>k&1 != 0)
			}
		}
		l := rowpack.New(lows, highs)
		if l.Words() != len(want)/64+1 {
			t.Fatalf("%d words, want those of %d bits and one more", l.Words(), len(want))
		}
		packed, got := slices.Repeat([]uint64{1<<64 - 1}, l.Words()), make([]int32, n)
		l.Pack(packed, row)
		for i := range 64 * l.Words() {
			if one := packed[i/64]>>(i%64)&1 != 0; one != (i < len(want) && want[i]) {
				t.Fatalf("bit %d of %d is %v", i, len(want), one)
			}
		}
		if l.Unpack(got, packed); !slices.Equal(got, row) {
			t.Fatalf("unpacked %v, want %v", got, row)
		}
	})
}
