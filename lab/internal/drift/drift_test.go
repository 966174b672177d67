package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// run codes a walk of a position (step 1) and an angle through both schemes.
func run(t *testing.T, frames, distance int, move func(i int) (x, angle float64)) *Result {
	t.Helper()
	s, err := schema.New("Move", 10, []schema.Field{
		{Name: "X", Kind: schema.KindScalar, Resolution: 1},
		{Name: "Yaw", Kind: schema.KindAngle, Bits: 10},
		{Name: "Keys", Kind: schema.KindBits, Width: 8},
	})
	uplinktest.Must(t, err)
	var rows strings.Builder
	rows.WriteString("X,Yaw,Keys\n")
	for i := range frames {
		x, angle := move(i)
		fmt.Fprintf(&rows, "%v,%v,%d\n", x, angle, i%256)
	}
	r, err := trace.NewReader(strings.NewReader(rows.String()), "walk.csv", s)
	uplinktest.Must(t, err)
	res, err := Run(r, s, distance)
	uplinktest.Must(t, err)
	if len(res.Fields) != 2 || res.Fields[0].Name != "X" || res.Fields[1].Name != "Yaw" || res.Frames != frames {
		t.Fatalf("%+v", res)
	}
	return res
}

// TestSteady moves by 0.4 of a step a frame, which the literal scheme never notices: after n frames
// it is 0.4 n off.
func TestSteady(t *testing.T) {
	for _, distance := range []int{1, 3} {
		hop := 0.4 / float64(distance)
		res := run(t, 300, distance, func(i int) (float64, float64) {
			return hop * float64(i), -170 - hop*float64(i)*360/1024
		})
		for _, f := range res.Fields {
			last := f.Spans[len(f.Spans)-1]
			if got, want := last.Article.Max/f.Step, hop*299; math.Abs(got-want) > 1 {
				t.Errorf("distance %d: %s: %v steps off, want %v", distance, f.Name, got, want)
			}
			if last.QuantizeFirst.Max > f.Step*0.5000001 {
				t.Errorf("distance %d: %s: ours is %v off, a step is %v", distance, f.Name, last.QuantizeFirst.Max, f.Step)
			}
		}
	}
}

// TestWhole moves by whole steps, which both schemes hold exactly.
func TestWhole(t *testing.T) {
	res := run(t, 300, 2, func(i int) (float64, float64) { return float64(i * i), float64(i*90%360 - 180) })
	for _, f := range res.Fields {
		for _, s := range f.Spans {
			if s.Article != (Error{}) || s.QuantizeFirst != (Error{}) {
				t.Errorf("%s after %v s: %+v", f.Name, s.Until, s)
			}
		}
	}
}

// TestRandomWalk expects the literal error to grow, and that of this project not to.
func TestRandomWalk(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := 0.0
	res := run(t, 2000, 1, func(int) (float64, float64) {
		x += 20 * (rng.Float64() - 0.5)
		return x, x
	})
	for _, f := range res.Fields {
		if len(f.Spans) != 3 || f.Spans[0].Until != 1 || f.Spans[1].Until != 10 || f.Spans[2].Until != 200 {
			t.Fatalf("%+v", f.Spans)
		}
		if first, last := f.Spans[0].Article.Mean, f.Spans[2].Article.Mean; last < 2*first || last < 3*f.Step {
			t.Errorf("%s: the literal error is %v at the start and %v at the end", f.Name, first, last)
		}
		for _, s := range f.Spans {
			if s.QuantizeFirst.Max > f.Step*0.5000001 || s.QuantizeFirst.Mean > f.Step*0.35 {
				t.Errorf("%s after %v s: ours is %+v off", f.Name, s.Until, s.QuantizeFirst)
			}
		}
	}
}
