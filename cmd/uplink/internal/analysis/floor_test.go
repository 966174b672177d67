package analysis

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// one is a field of one number.
func one() *field {
	return &field{Field: schema.Field{Name: "X", Kind: schema.KindScalar}, n: 1, modulus: []float64{0}}
}

// walk is a trace of one number that steps by noise of a known width.
func walk(rng *rand.Rand, frames int, step func(i int) float64) *series {
	s := &series{d: 1, first: margin + 3, fields: []*field{one()}}
	x := 0.0
	for i := range frames {
		x += math.Round(rng.NormFloat64() * step(i))
		s.rows = append(s.rows, []float64{x})
	}
	return s
}

func TestNoiseCostsItsEntropy(t *testing.T) {
	for _, widths := range [][2]float64{{5, 5}, {50, 50}, {4, 256}} { // which alternate
		s := walk(rand.New(rand.NewPCG(1, 2)), 4000, func(i int) float64 { return widths[i/200%2] })
		b := s.price(s.fields[0])
		want := math.Log2(math.Sqrt(widths[0]*widths[1]) * math.Sqrt(2*math.Pi*math.E))
		if got := b.Flags + b.Values; math.Abs(got-want) > .4 || widths[0] == widths[1] && math.Abs(got-want) > .2 {
			t.Errorf("widths %v: %.2f bits, want about %.2f", widths, got, want)
		}
	}
}

func TestLineCostsNothing(t *testing.T) {
	s := &series{d: 3, first: 9 + margin, fields: []*field{one()}}
	for i := range 2000 {
		s.rows = append(s.rows, []float64{float64(i * 7)})
	}
	if b := s.price(s.fields[0]); b.Flags+b.Values > .1 {
		t.Errorf("%.2f bits for a straight line", b.Flags+b.Values)
	}
}
