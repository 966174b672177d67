package statesync

import (
	"math/big"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestRoots holds the root by tables against one by arithmetic of any size.
func TestRoots(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, v uint64) {
		if got, want := isqrt(v), new(big.Int).Sqrt(new(big.Int).SetUint64(v)).Uint64(); got != want {
			t.Fatalf("the root of %d is %d, want %d", v, got, want)
		}
	}
	for v := range uint64(1 << 12) {
		check(t, v)
	}
	for _, x := range []uint64{1 << 31, 1<<32 - 1} {
		for d := range uint64(3) {
			check(t, x*x-1+d)
		}
	}
	check(t, 1<<64-1)
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.Uint64Max(1<<32-1).Draw(rt, "x")
		check(rt, x*x)
		check(rt, max(x*x, 1)-1)
		check(rt, rapid.Uint64().Draw(rt, "v"))
	})
}

// TestInverse has dividing by a table give the quotient, to 1/256 of it.
func TestInverse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.Int64Range(1, 1<<44).Draw(rt, "d")
		v := rapid.Int64Range(0, 1<<44).Draw(rt, "v")
		m, s := inverse(d)
		got, want := v*m>>s, v/d
		if got > want+1+want/256 || got < want-1-want/256 {
			rt.Fatalf("%d/%d is %d, want %d", v, d, got, want)
		}
		if d&(d-1) == 0 && got != want {
			rt.Fatalf("%d/%d is %d, want exactly %d", v, d, got, want)
		}
	})
}

// TestUnlikely bounds what ends a packet from above.
func TestUnlikely(t *testing.T) {
	for p := 24; p <= 65536-24; p++ {
		left := 65536 - p // of 65536, that it is false
		if n := unlikely(chance{p: uint16(p)}); left<<n < 65536 || n > bits.Len(uint(65536/left))+1 {
			t.Fatalf("%d of 65536 counts %d bits", left, n)
		}
	}
}
