package schema

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func quatSchema(t testing.TB, bits int) *Schema {
	return mustSchema(t, Field{Name: "Q", Kind: KindQuat, Bits: bits})
}

// randomQuat returns a rotation from the uniform distribution, with length 1.
func randomQuat(rng *rand.Rand) []float64 {
	q := make([]float64, 4)
	for i := range q {
		q[i] = rng.NormFloat64()
	}
	return normalized(q)
}

// roundTrip quantizes v and returns the restored values and the components.
func roundTrip(t *testing.T, s *Schema, v []float64) (back []float64, ints []int32) {
	t.Helper()
	f := s.NewFrame()
	must(t, s.QuantizeField(f, 0, v))
	return s.RestoreField(nil, f, 0), f.Ints
}

// distance returns the length of a-b.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// rotationBetween returns the angle between rotations a and b, in radians.
func rotationBetween(a, b []float64) float64 {
	negative := []float64{-b[0], -b[1], -b[2], -b[3]}
	return 4 * math.Asin(min(distance(a, b), distance(a, negative))/2)
}

// TestQuatExact verifies that the identity and half turns about the axes are restored exactly.
func TestQuatExact(t *testing.T) {
	for _, bits := range []int{3, 12, 20} {
		s := quatSchema(t, bits)
		for i := range 4 {
			q := make([]float64, 4)
			q[i] = 1
			back, ints := roundTrip(t, s, q)
			if !slices.Equal(back, q) || !slices.Equal(ints, []int32{int32(i), 0, 0, 0}) {
				t.Errorf("%d bits: %v comes back as %v, components %v", bits, q, back, ints)
			}
		}
	}
}

// TestQuatScale verifies that quaternions of any length or sign, which are the same rotation, have
// equal components, and are restored with length 1.
func TestQuatScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := quatSchema(t, 12)
	for range 2000 {
		q := randomQuat(rng)
		_, want := roundTrip(t, s, q)
		for _, by := range []float64{-1, 1e-90, 1e-3, 2, 1e90} {
			back, ints := roundTrip(t, s, []float64{q[0] * by, q[1] * by, q[2] * by, q[3] * by})
			if length := distance(back, make([]float64, 4)); !slices.Equal(ints, want) || math.Abs(length-1) > 1e-15 {
				t.Fatalf("%v times %v: %v, want %v; length %v", q, by, ints, want, length)
			}
		}
	}
}

// TestQuatError verifies the maximum error of a rotation. An error of half a step, 1/(sqrt 2 *
// limit), in each of the three components is at most 2*sqrt(12) half steps of rotation, if all four
// components are equal.
func TestQuatError(t *testing.T) {
	for _, bits := range []int{6, 9, 12, 20} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(bits), 0))
			s := quatSchema(t, bits)
			bound := math.Sqrt(6) / float64(int(1)<<(bits-1)-1)
			worst := 0.0
			for range 50_000 {
				q := randomQuat(rng)
				back, _ := roundTrip(t, s, q)
				worst = max(worst, rotationBetween(q, back))
			}
			if worst > bound*1.02 { // plus second-order terms
				t.Errorf("%v rad, want at most %v", worst, bound)
			}
		})
	}
}

// TestQuatUnbiased verifies that the mean error of each component is 0, which requires steps that
// are symmetric about zero.
func TestQuatUnbiased(t *testing.T) {
	const n, bits = 200_000, 9
	rng := rand.New(rand.NewPCG(3, 0))
	s := quatSchema(t, bits)
	step := 1 / (math.Sqrt2 * (1<<(bits-1) - 1))
	var sum [4]float64
	var count [4]int
	for range n {
		q := randomQuat(rng)
		back, ints := roundTrip(t, s, q)
		largest := int(ints[0])
		for i := range q {
			if i != largest {
				sum[i] += back[i] - math.Copysign(1, q[largest])*q[i]
				count[i]++
			}
		}
	}
	for i := range sum {
		mean := sum[i] / float64(count[i])
		// standard deviation of the mean of errors that are uniform within a step
		sigma := step / math.Sqrt(12*float64(count[i]))
		if math.Abs(mean) > 4*sigma {
			t.Errorf("component %d: mean error %v, %.1f deviations from 0", i, mean, mean/sigma)
		}
	}
}

// TestQuatRequantize verifies that a restored rotation quantizes to the same components, unless
// rounding made another of its components the largest. In that case the rotation changes by less
// than the quantization error.
func TestQuatRequantize(t *testing.T) {
	for _, bits := range []int{3, 4, 5} {
		s := quatSchema(t, bits)
		f, again := s.NewFrame(), s.NewFrame()
		hi := s.layouts[0].Hi
		for n := range 4 * (2*hi + 1) * (2*hi + 1) * (2*hi + 1) {
			f.Ints[0] = n % 4
			for k, m := 1, n/4; k < 4; k, m = k+1, m/(2*hi+1) {
				f.Ints[k] = m%(2*hi+1) - hi
			}
			back := s.RestoreField(nil, f, 0)
			must(t, s.QuantizeField(again, 0, back))
			if again.Ints[0] == f.Ints[0] {
				if !again.Equal(f) {
					t.Fatalf("%v comes back as %v", f.Ints, again.Ints)
				}
				continue
			}
			if back[again.Ints[0]] < back[f.Ints[0]] && -back[again.Ints[0]] < back[f.Ints[0]] {
				t.Fatalf("%v comes back as %v, but %v has its largest elsewhere", f.Ints, again.Ints, back)
			}
			if moved := rotationBetween(back, s.RestoreField(nil, again, 0)); moved > math.Sqrt(6)/float64(hi) {
				t.Fatalf("%v comes back as %v, %v rad away", f.Ints, again.Ints, moved)
			}
		}
	}
}

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

// TestUnitVecError verifies the maximum error of a direction. An error of half a step, 1/limit, in
// both components moves the point on the octahedron by sqrt 6 half steps. The octahedron is closest
// to the center at distance 1/sqrt 3.
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
			if worst > bound*1.02 { // plus second-order terms
				t.Errorf("%v rad, want at most %v", worst, bound)
			}
		})
	}
}
