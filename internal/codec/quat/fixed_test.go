package quat

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRotations holds the series against the functions.
func TestExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v [3]int64
		sum := 0.0
		for i := range v {
			v[i] = rapid.Int64Range(-One/2, One/2).Draw(t, "v")
			sum += float64(v[i]) * float64(v[i])
		}
		angle := math.Sqrt(sum) / One
		var q Fixed
		q.Exp(v[0], v[1], v[2])
		if want := math.Cos(angle/2) * One; math.Abs(float64(q[3])-want) > 8 {
			t.Fatalf("cos of half of %g is %d, want %g", angle, q[3], want)
		}
		one := Fixed{0, 0, 0, One}
		var back [3]int64
		back[0], back[1], back[2] = Between(&one, &q)
		for i := range v {
			if d := back[i] - v[i]; d < -200 || d > 200 {
				t.Fatalf("%v is %v back", v, back)
			}
		}
	})
}

// TestTurns holds rotations by many turns against those in floats: each doubling doubles the error.
func TestExpAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v [3]int64
		var f [3]float64
		for i := range v {
			v[i] = rapid.Int64Range(-64*One, 64*One).Draw(t, "v")
			f[i] = float64(v[i]) / One
		}
		var got Fixed
		got.ExpAny(v)
		want := ExpFloat(f)
		for i := range got {
			if off := float64(got[i])/One - want[i]; off < -.03 || off > .03 {
				t.Fatalf("%v turns by %v, want %v", f, got, want)
			}
		}
		few := [3]int64{v[0] >> 6, v[1] >> 6, v[2] >> 6} // not doubled
		var once Fixed
		got.ExpAny(few)
		if once.Exp(few[0], few[1], few[2]); got != once {
			t.Fatalf("%v turns by %v, want %v", few, got, once)
		}
	})
}
