package rpcdelta

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

// randomQuat is uniform over all rotations, with length 1.
func randomQuat(rng *rand.Rand) []float64 {
	q := make([]float64, 4)
	for i := range q {
		q[i] = rng.NormFloat64()
	}
	return normalized(q)
}

// roundTrip gives the quaternion that arrives, and its components.
func roundTrip(t *testing.T, s *Schema, v []float64) (back []float64, ints []int32) {
	t.Helper()
	f := s.NewFrame()
	if err := s.QuantizeField(f, 0, v); err != nil {
		t.Fatal(err)
	}
	return s.RestoreField(nil, f, 0), f.Ints
}

// distance is the length of a-b.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// rotationBetween is the angle in radians that turns a into b or -b.
func rotationBetween(a, b []float64) float64 {
	negative := []float64{-b[0], -b[1], -b[2], -b[3]}
	return 4 * math.Asin(min(distance(a, b), distance(a, negative))/2)
}

// TestQuatExact: the identity and the half turns about the axes lose nothing.
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

// TestQuatSign: q and -q are one rotation, so they are one frame.
func TestQuatSign(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := quatSchema(t, 12)
	for range 10_000 {
		q := randomQuat(rng)
		_, a := roundTrip(t, s, q)
		_, b := roundTrip(t, s, []float64{-q[0], -q[1], -q[2], -q[3]})
		for i := range a {
			// A tie of rounding goes up on either side; it is not met here.
			if a[i] != b[i] {
				t.Fatalf("%v is %v, its negative %v", q, a, b)
			}
		}
	}
}

// TestQuatLength: only the direction counts, at any length.
func TestQuatLength(t *testing.T) {
	s := quatSchema(t, 12)
	q := []float64{0.1, -0.2, 0.3, 0.9}
	_, want := roundTrip(t, s, q)
	for _, by := range []float64{1e-90, 1e-3, 2, 1e90} {
		back, ints := roundTrip(t, s, []float64{q[0] * by, q[1] * by, q[2] * by, q[3] * by})
		if !slices.Equal(ints, want) {
			t.Errorf("times %v: %v, want %v", by, ints, want)
		}
		if length := distance(back, make([]float64, 4)); math.Abs(length-1) > 1e-15 {
			t.Errorf("times %v: comes back with length %v", by, length)
		}
	}
}

// TestQuatError: half a step of 1/(sqrt 2 * limit) in each of three components
// is at most 2*sqrt(12) half steps of rotation, when all four are equal.
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
			if worst > bound*1.02 { // the rest is of second order
				t.Errorf("%v rad, want at most %v", worst, bound)
			}
		})
	}
}

// TestQuatUnbiased: over many rotations the errors of each component cancel, as
// they would not if the steps lay asymmetrically about zero.
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
		// Errors are spread evenly over a step: their mean has this deviation.
		sigma := step / math.Sqrt(12*float64(count[i]))
		if math.Abs(mean) > 4*sigma {
			t.Errorf("component %d: mean error %v, %.1f deviations from 0", i, mean, mean/sigma)
		}
	}
}

// TestQuatRequantize: a restored rotation quantizes to the same integers unless
// another of its components has become the largest, as it may when the two were
// equal but for rounding. Then it moves, by less than the error of quantizing.
func TestQuatRequantize(t *testing.T) {
	for _, bits := range []int{3, 4, 5} {
		s := quatSchema(t, bits)
		f, again := s.NewFrame(), s.NewFrame()
		hi := s.plans[0].hi
		for n := range 4 * (2*hi + 1) * (2*hi + 1) * (2*hi + 1) {
			f.Ints[0] = n % 4
			for k, m := 1, n/4; k < 4; k, m = k+1, m/(2*hi+1) {
				f.Ints[k] = m%(2*hi+1) - hi
			}
			back := s.RestoreField(nil, f, 0)
			if err := s.QuantizeField(again, 0, back); err != nil {
				t.Fatal(err)
			}
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
