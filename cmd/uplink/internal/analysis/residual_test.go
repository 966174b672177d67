package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestIdealNearEntropy: noise of a steady width takes little more than its entropy, noise that is
// nearly always 0 nearly nothing.
func TestIdealNearEntropy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, width := range []float64{4, 60, 1000} {
		c, sum := newIdeal(), 0.0
		const n = 4000
		for range n {
			e := math.Round(rng.NormFloat64() * width)
			sum += c.bits(e)
			c.learn(e)
		}
		want := math.Log2(width * math.Sqrt(2*math.Pi*math.E))
		if got := sum / n; got < want-.05 || got > want+.25 {
			t.Errorf("width %v: %.2f bits, want about %.2f", width, got, want)
		}
	}
	c, sum := newIdeal(), 0.0
	for i := range 2000 {
		e := float64(i / 1000 % 2 * (1 - min(1, i%1000))) // once 1
		sum += c.bits(e)
		c.learn(e)
	}
	if sum > 120 {
		t.Errorf("%.1f bits for zeros", sum)
	}
}

// TestChanceIsOne: the chances of all residuals add up to about 1, and never to more but by the
// least chance.
func TestChanceIsOne(t *testing.T) {
	m := even()
	for _, l := range []float64{-4, 0, 3} {
		var each [parts]float64
		sum := 0.0
		for e := -5000.0; e <= 5000; e++ {
			sum += m.chance(e, l, &each)
		}
		if sum < .99 || sum > 1.001 {
			t.Errorf("level %v: chances add up to %v", l, sum)
		}
	}
}

func TestDescribe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ints := rapid.SliceOfN(rapid.IntRange(-20, 20), 1, 200).Draw(t, "e")
		e, mags, counts := make([]float64, len(ints)), []float64{}, map[int]float64{}
		mean, n := 0.0, float64(len(ints))
		for i, v := range ints {
			e[i] = float64(v)
			mags = append(mags, math.Abs(e[i]))
			mean += math.Abs(e[i]) / n
			counts[v]++
		}
		entropy := 0.0
		for _, k := range counts {
			entropy -= k / n * math.Log2(k/n)
		}
		slices.Sort(mags)
		s := describeErrors(e)
		if math.Abs(s.Mean-mean) > 1e-9 || math.Abs(s.Entropy-entropy) > 1e-9 || math.Abs(s.Zeros-counts[0]/n) > 1e-9 {
			t.Fatalf("%+v, want mean %v and entropy %v", s, mean, entropy)
		}
		for share, got := range map[float64]float64{.5: s.P50, .9: s.P90, .99: s.P99} {
			below, above := 0.0, 0.0
			for _, m := range mags {
				if m <= got {
					below++
				}
				if m < got {
					above++
				}
			}
			if below/n < share || above/n >= share {
				t.Fatalf("%v is the percentile %v of %v", got, share, mags)
			}
		}
	})
	if s := describeErrors(nil); s != (Stats{}) {
		t.Errorf("%+v of none", s)
	}
}
