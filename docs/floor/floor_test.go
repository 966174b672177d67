package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// walk is a trace of one number that steps by noise of a known width.
func walk(rng *rand.Rand, frames int, step func(i int) float64) *series {
	s := &series{d: 1, first: margin + 3, fields: []field{{name: "X", kind: rpcdelta.KindScalar, n: 1}}}
	x := 0.0
	for i := range frames {
		x += math.Round(rng.NormFloat64() * step(i))
		s.rows = append(s.rows, []float64{x})
	}
	return s
}

func TestNoiseCostsItsEntropy(t *testing.T) {
	for _, width := range []float64{5, 50} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := walk(rng, 4000, func(int) float64 { return width })
		b := s.price(&s.fields[0])
		want := math.Log2(width * math.Sqrt(2*math.Pi*math.E))
		if got := b.flags + b.values; math.Abs(got-want) > .2 {
			t.Errorf("width %v: %.2f bits, want about %.2f", width, got, want)
		}
	}
}

func TestChangingWidthIsSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	width := func(i int) float64 {
		if i/200%2 == 0 {
			return 4
		}
		return 256
	}
	s := walk(rng, 4000, width)
	b := s.price(&s.fields[0])
	want := math.Log2(32 * math.Sqrt(2*math.Pi*math.E)) // the mean of both
	if got := b.flags + b.values; math.Abs(got-want) > .4 {
		t.Errorf("%.2f bits, want about %.2f", got, want)
	}
}

func TestLineCostsNothing(t *testing.T) {
	s := &series{d: 3, first: 9 + margin, fields: []field{{name: "X", kind: rpcdelta.KindScalar, n: 1}}}
	for i := range 2000 {
		s.rows = append(s.rows, []float64{float64(i * 7)})
	}
	if b := s.price(&s.fields[0]); b.flags+b.values > .1 {
		t.Errorf("%.2f bits for a straight line", b.flags+b.values)
	}
}

func TestForesightLearnsFromThePast(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var x [][]float64
	var y []float64
	for i := range 4 * step {
		w := 2.0
		if i >= 2*step {
			w = -3
		}
		v := rng.NormFloat64()
		x, y = append(x, []float64{v}), append(y, w*v)
	}
	e := foresight(x, y, 1)
	for i, v := range e {
		known := i < 2*step
		if right := math.Abs(v) < 1e-3*math.Abs(x[i][0])+1e-9; right != known && i < 3*step {
			t.Fatalf("frame %d: %v is left of %v", i, v, y[i])
		}
	}
}

func TestTurnsAreInTheChart(t *testing.T) {
	f := field{limit: 2047, kind: rpcdelta.KindQuat, n: 4}
	a := exp([3]float64{.1, -.2, .3})
	b := mul(exp([3]float64{.01, .02, -.03}), a)
	v := between(a, b)
	for i, want := range []float64{.01, .02, -.03} {
		if math.Abs(v[i]-want) > 1e-6 {
			t.Errorf("axis %d: %v, want %v", i, v[i], want)
		}
	}
	row := append([]float64{3}, 0, 0, 0)
	for i, c := range f.chart(a, 3) {
		row[1+i] = math.Round(c)
	}
	for i, x := range f.quatOf(row) {
		if math.Abs(x-a[i]) > 1e-3 {
			t.Errorf("element %d: %v, want %v", i, x, a[i])
		}
	}
}
