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
		q := Exp(v)
		if want := math.Cos(angle/2) * One; math.Abs(float64(q[3])-want) > 8 {
			t.Fatalf("cos of half of %g is %d, want %g", angle, q[3], want)
		}
		one := Fixed{0, 0, 0, One}
		back := Between(&one, &q)
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
		got, want := ExpAny(v), ExpFloat(f)
		for i := range got {
			if off := float64(got[i])/One - want[i]; off < -.03 || off > .03 {
				t.Fatalf("%v turns by %v, want %v", f, got, want)
			}
		}
		few := [3]int64{v[0] >> 6, v[1] >> 6, v[2] >> 6} // not doubled
		if ExpAny(few) != Exp(few) {
			t.Fatalf("%v turns by %v, want %v", few, ExpAny(few), Exp(few))
		}
	})
}

func TestFloat(t *testing.T) {
	const limit = 2047
	a := ExpFloat([3]float64{.1, -.2, .3})
	b := ExpFloat([3]float64{.01, .02, -.03}).Mul(a)
	v := BetweenFloat(a, b)
	for i, want := range []float64{.01, .02, -.03} {
		if math.Abs(v[i]-want) > 1e-6 {
			t.Errorf("axis %d: %v, want %v", i, v[i], want)
		}
	}
	packed := a.Pack(3, limit)
	for i, c := range packed {
		packed[i] = math.Round(c)
	}
	for i, x := range UnpackFloat(3, packed, limit) {
		if math.Abs(x-a[i]) > 1e-3 {
			t.Errorf("element %d: %v, want %v", i, x, a[i])
		}
	}
}
