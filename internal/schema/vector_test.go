package schema

import (
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

// TestExact verifies that the identity, half turns about the axes, and the directions of the axes
// are restored exactly and with length 1.
func TestExact(t *testing.T) {
	for _, bits := range []int{3, 12, 20} {
		for i := range 10 {
			kind, v := KindQuat, make([]float64, 4)
			if v[i%4] = 1; i >= 4 {
				kind, v = KindUnitVec, make([]float64, 3)
				v[(i-4)%3] = math.Copysign(1, float64(i)-6.5)
			}
			s := mustSchema(t, Field{Name: "V", Kind: kind, Bits: bits})
			for _, length := range []float64{1, 1e-9, 25} {
				scaled := slices.Clone(v)
				for k := range scaled {
					scaled[k] *= length
				}
				back, ints := roundTrip(t, s, scaled)
				if !slices.Equal(back, v) || kind == KindQuat && !slices.Equal(ints, []int32{int32(i), 0, 0, 0}) {
					t.Errorf("%d bits: %v comes back as %v, components %v", bits, scaled, back, ints)
				}
			}
		}
	}
}

// TestQuatScale verifies that quaternions of any length or sign, which are the same rotation, have
// equal components.
func TestQuatScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := quatSchema(t, 12)
	for range 2000 {
		q := randomQuat(rng)
		_, want := roundTrip(t, s, q)
		for _, by := range []float64{-1, 1e-90, 1e-3, 2, 1e90} {
			if _, ints := roundTrip(t, s, []float64{q[0] * by, q[1] * by, q[2] * by, q[3] * by}); !slices.Equal(ints, want) {
				t.Fatalf("%v times %v: %v, want %v", q, by, ints, want)
			}
		}
	}
}

// TestAngularError verifies the maximum error, in radians, of a rotation and of a direction, and
// that restored ones have length 1.
//
// An error of half a step, 1/(sqrt 2 * limit), in each of the three components of a quaternion is
// at most 2*sqrt(12) half steps of rotation, if all four components are equal. An error of half a
// step, 1/limit, in both components of a direction moves the point on the octahedron by sqrt 6 half
// steps. The octahedron is closest to the center at distance 1/sqrt 3.
func TestAngularError(t *testing.T) {
	for _, bits := range []int{6, 9, 12, 20} {
		for _, c := range []struct {
			kind  Kind
			bound float64 // of limit 1
		}{{KindQuat, math.Sqrt(6)}, {KindUnitVec, 3 / math.Sqrt2}} {
			rng := rand.New(rand.NewPCG(uint64(bits), 0))
			s := mustSchema(t, Field{Name: "V", Kind: c.kind, Bits: bits})
			bound, worst := c.bound/float64(int(1)<<(bits-1)-1), 0.0
			for range 50_000 {
				v := randomQuat(rng)
				between := rotationBetween
				if c.kind == KindUnitVec {
					v = normalized(v[:3])
					between = func(a, b []float64) float64 { return 2 * math.Asin(distance(a, b)/2) }
				}
				back, _ := roundTrip(t, s, v)
				if length := distance(back, make([]float64, len(v))); math.Abs(length-1) > 1e-15 {
					t.Fatalf("%v comes back with length %v", v, length)
				}
				worst = max(worst, between(v, back))
			}
			if worst > bound*1.02 { // plus second-order terms
				t.Errorf("%s of %d bits: %v rad, want at most %v", c.kind, bits, worst, bound)
			}
		}
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
