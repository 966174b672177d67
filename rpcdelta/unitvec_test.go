package rpcdelta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func unitVecSchema(t testing.TB, bits int) *Schema {
	return mustSchema(t, Field{Name: "N", Kind: KindUnitVec, Bits: bits})
}

func TestUnitVecAxesAreExact(t *testing.T) {
	for _, bits := range []int{3, 12, 20} {
		s := unitVecSchema(t, bits)
		for _, v := range [][]float64{{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}} {
			for _, length := range []float64{1, 1e-9, 25} {
				back, _ := roundTrip(t, s, []float64{v[0] * length, v[1] * length, v[2] * length})
				if !slices.Equal(back, v) {
					t.Errorf("%d bits: %v times %v comes back as %v", bits, v, length, back)
				}
			}
		}
	}
}

// TestUnitVecError: half a step of 1/limit in both components moves the point on
// the octahedron by sqrt 6 half steps, where it is nearest to the center, at
// 1/sqrt 3.
func TestUnitVecError(t *testing.T) {
	for _, bits := range []int{6, 12, 20} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(bits), 0))
			s := unitVecSchema(t, bits)
			bound := 3 / (math.Sqrt2 * float64(int(1)<<(bits-1)-1))
			worst := 0.0
			for range 50_000 {
				v := normalized([]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
				back, _ := roundTrip(t, s, v)
				if length := distance(back, make([]float64, 3)); math.Abs(length-1) > 1e-15 {
					t.Fatalf("%v comes back with length %v", v, length)
				}
				worst = max(worst, 2*math.Asin(distance(v, back)/2))
			}
			if worst > bound*1.02 { // the rest is of second order
				t.Errorf("%v rad, want at most %v", worst, bound)
			}
		})
	}
}

// TestUnitVecComponents: every pair of components comes back as itself, those on
// the folds and at the rim too.
func TestUnitVecComponents(t *testing.T) {
	for _, bits := range []int{3, 4, 8} {
		s := unitVecSchema(t, bits)
		f, again := s.NewFrame(), s.NewFrame()
		hi := s.plans[0].hi
		for x := -hi; x <= hi; x++ {
			for y := -hi; y <= hi; y++ {
				f.Ints[0], f.Ints[1] = x, y
				if err := s.QuantizeField(again, 0, s.RestoreField(nil, f, 0)); err != nil || !again.Equal(f) {
					t.Fatalf("%d bits: %v comes back as %v, %v", bits, f.Ints, again.Ints, err)
				}
			}
		}
	}
}
