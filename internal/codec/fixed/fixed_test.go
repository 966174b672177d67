package fixed_test

import (
	"math"
	"math/big"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// TestSqrt holds the root against one by arithmetic of any size.
func TestSqrt(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, v uint64) {
		if got, want := fixed.Sqrt(v), new(big.Int).Sqrt(new(big.Int).SetUint64(v)).Uint64(); got != want {
			t.Fatalf("the root of %d is %d, want %d", v, got, want)
		}
	}
	for v := range uint64(1 << 12) {
		check(t, v)
	}
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.Uint64Range(1, 1<<26-1).Draw(rt, "x")
		check(rt, x*x)
		check(rt, x*x-1)
		check(rt, rapid.Uint64Max(1<<52-1).Draw(rt, "v"))
	})
}

// TestLog2 holds the logarithm against that of floats: a straight line between powers of two is at
// most 0.0861 below it. It is that of the leading bits.
func TestLog2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, 1<<60).Draw(t, "v") >> rapid.IntRange(0, 60).Draw(t, "shift")
		n := bits.Len64(uint64(v) + 12)
		if got, want := fixed.Log2(v), int64(n-5)<<8+(v+12)<<(63-n)>>54&255; got != want {
			t.Fatalf("the logarithm of %d is %d, want %d", v, got, want)
		}
		got, want := float64(fixed.Log2(v))/fixed.LogOne, math.Log2((float64(v)+12)/16)
		if got > want+1e-9 || got < want-0.0861-1./fixed.LogOne {
			t.Fatalf("the logarithm of %d is %g, want %g", v, got, want)
		}
		if fixed.Log2(-v) != fixed.Log2(v) || fixed.Log2(v+1) < fixed.Log2(v) {
			t.Fatalf("logarithms of %d, %d and %d are %d, %d and %d", -v, v, v+1, fixed.Log2(-v), fixed.Log2(v), fixed.Log2(v+1))
		}
	})
}
