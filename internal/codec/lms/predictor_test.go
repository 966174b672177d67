package lms

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
)

// converges checks that a predictor learns the weights of another one: its error shrinks to a
// fraction of the initial one, plus slack.
func converges(t *rapid.T, right Predictor, steps int, slack int64, terms func(x *[Terms]int64), learn func(l *Predictor, x *[Terms]int64, err int64)) {
	l := New()
	var x [Terms]int64
	first, last := int64(0), int64(0)
	for i := range steps {
		terms(&x)
		err := right.Predict(&x) - l.Predict(&x)
		switch {
		case i < 100:
			first += fixed.Abs(err)
		case i >= steps-100:
			last += fixed.Abs(err)
		}
		learn(&l, &x, err)
	}
	if last > first/16+slack {
		t.Fatalf("it misses by %d, at first by %d", last/100, first/100)
	}
}

func TestLearn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int32Range(-2<<16, 2<<16), 1, 6).Draw(t, "weights")
		size := rapid.Int64Range(64, 1<<30).Draw(t, "size")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		converges(t, New(weights...), 9000, 100*(size/64+2), func(x *[Terms]int64) {
			for k := range weights {
				x[k] = r.Int64N(2*size) - size
			}
		}, func(l *Predictor, x *[Terms]int64, err int64) { l.Learn(x, err, size) })
	})
}

// TestAdapt is TestLearn for logarithms.
func TestAdapt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		converges(t, New(30000, -13000, 20000), 4000, 0, func(x *[Terms]int64) {
			*x = [Terms]int64{r.Int64N(20 * fixed.LogOne), r.Int64N(20 * fixed.LogOne), Bias}
		}, (*Predictor).Adapt)
	})
}

// TestHeaviest bounds weights whatever there is to learn.
func TestHeaviest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, any64 := New(), rapid.Int64Range(-1<<46, 1<<46)
		for range 200 {
			x := [Terms]int64(rapid.SliceOfN(any64, Terms, Terms).Draw(t, "terms"))
			l.Learn(&x, any64.Draw(t, "error"), rapid.Int64Range(-1, 1<<46).Draw(t, "scale"))
		}
		for i, v := range l.Weights {
			if v > heaviest || v < -heaviest || l.power[i] < 0 {
				t.Fatalf("weight %d is %d, its term's power %d", i, v, l.power[i])
			}
		}
	})
}

// TestQuotient bounds the error of quotient to about a third of the exact value.
func TestQuotient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Uint32Range(16, 1<<31-1).Draw(t, "d")
		a := rapid.Int64Range(-1<<30, 1<<30).Draw(t, "a")
		got, want := float64(quotient(a, d)), float64(a)/float64(d)
		if diff := max(got-want, want-got); diff > 0.51+max(want, -want)*0.34 {
			t.Fatalf("%d/%d is %g, want %g", a, d, got, want)
		}
	})
}
