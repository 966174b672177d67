package quat

import (
	"math"
	"testing"
)

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
