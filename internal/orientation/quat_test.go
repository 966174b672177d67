package orientation

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRotations holds the series against the functions.
func TestRotations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v [3]int64
		sum := 0.0
		for i := range v {
			v[i] = rapid.Int64Range(-One/2, One/2).Draw(t, "v")
			sum += float64(v[i]) * float64(v[i])
		}
		angle := math.Sqrt(sum) / One
		q := Turn(v)
		if want := math.Cos(angle/2) * One; math.Abs(float64(q[3])-want) > 8 {
			t.Fatalf("cos of half of %g is %d, want %g", angle, q[3], want)
		}
		one := Quat{0, 0, 0, One}
		back := Between(&one, &q)
		for i := range v {
			if d := back[i] - v[i]; d < -200 || d > 200 {
				t.Fatalf("%v is %v back", v, back)
			}
		}
	})
}
