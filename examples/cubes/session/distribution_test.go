package session

import (
	"math"
	"testing"
)

// TestMerge checks that merged distributions equal one of all numbers, except for samples.
func TestMerge(t *testing.T) {
	for _, counts := range [][2]int{{0, 5}, {5, 0}, {100, 200}, {100, 3 * maxSamples}, {3 * maxSamples, 100}} {
		var all, one, two Distribution
		for i := range counts[0] + counts[1] {
			v := math.Mod(float64(i)*0.618, 1)
			all.Add(v)
			if i < counts[0] {
				one.Add(v)
			} else {
				two.Add(v)
			}
		}
		one.Merge(&two)
		if one.Count != all.Count || one.Max != all.Max || math.Abs(one.Sum-all.Sum) > 1e-6*all.Sum {
			t.Errorf("%v: %d, %v, %v, want %d, %v, %v", counts, one.Count, one.Sum, one.Max, all.Count, all.Sum, all.Max)
		}
		for _, q := range []float64{0.1, 0.5, 0.99} {
			if got, want := one.Quantile(q), all.Quantile(q); math.Abs(got-want) > 0.05 && all.Count > 100 {
				t.Errorf("%v: quantile %v is %v, want %v", counts, q, got, want)
			}
		}
		one.Add(2)
		if one.Max != 2 || one.Count != all.Count+1 {
			t.Errorf("%v: %d, %v after one more", counts, one.Count, one.Max)
		}
	}
}
