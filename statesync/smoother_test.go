package statesync_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
)

func at(x float64) statesync.Pose {
	return statesync.Pose{Position: schema.Vec3{X: x}, Orientation: schema.Quat{W: 1}}
}

func about(angle float64) schema.Quat {
	return schema.Quat{Z: math.Sin(angle / 2), W: math.Cos(angle / 2)}
}

func TestBadSmoothing(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for field, bad := range map[string][]statesync.Smoothing{
		"Slow":   {{Slow: 1}, {Slow: nan}},
		"Fast":   {{Fast: -.5}, {Fast: .96}},
		"Near":   {{Near: -1}, {Near: 2}, {Far: .1}},
		"Far":    {{Far: inf}, {Far: nan}},
		"Turned": {{Turned: .6}, {Turned: -.6}},
		"Spun":   {{Spun: 1}},
		"Snap":   {{Snap: -1}, {Snap: nan}},
	} {
		for _, cfg := range bad {
			if _, err := statesync.NewSmoother(cfg); err == nil || !strings.Contains(err.Error(), "Smoothing."+field+" is") {
				t.Errorf("%+v gave %v, want an error of %s", cfg, err, field)
			}
		}
	}
	if _, err := statesync.NewSmoother(statesync.Smoothing{Near: 1, Far: 1, Slow: .5, Fast: .5, Turned: .5, Snap: inf}); err != nil {
		t.Error(err)
	}
}

// TestCorrectIsNotSeen checks that a correction does not move the drawn pose.
func TestCorrectIsNotSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := statesync.NewSmoother(statesync.Smoothing{Snap: math.Inf(1)}) // errors add up
		if err != nil {
			rt.Fatal(err)
		}
		f := rapid.Float64Range(-1, 1)
		pose := func() statesync.Pose {
			q := schema.Quat{X: f.Draw(rt, "x"), Y: f.Draw(rt, "y"), Z: f.Draw(rt, "z"), W: 1.1 + f.Draw(rt, "w")}
			n := math.Sqrt(q.X*q.X + q.Y*q.Y + q.Z*q.Z + q.W*q.W)
			return statesync.Pose{
				Position:    schema.Vec3{X: f.Draw(rt, "px"), Y: f.Draw(rt, "py"), Z: f.Draw(rt, "pz")},
				Orientation: schema.Quat{X: q.X / n, Y: q.Y / n, Z: q.Z / n, W: q.W / n},
			}
		}
		for range 5 {
			from, to := pose(), pose()
			was := s.Drawn(from)
			s.Correct(from, to)
			is := s.Drawn(to)
			dot := was.Orientation.X*is.Orientation.X + was.Orientation.Y*is.Orientation.Y + was.Orientation.Z*is.Orientation.Z + was.Orientation.W*is.Orientation.W
			if math.Abs(was.Position.X-is.Position.X)+math.Abs(was.Position.Y-is.Position.Y)+math.Abs(was.Position.Z-is.Position.Z) > 1e-9 || math.Abs(dot) < 1-1e-9 {
				rt.Fatalf("%+v moved to %+v", was, is)
			}
			before, angle := s.Error()
			s.Step(rapid.Float64Range(.001, .1).Draw(rt, "dt"))
			after, smaller := s.Error()
			if after > before || smaller > angle || after == before && before > 0 {
				rt.Fatalf("error of %g, %g became %g, %g", before, angle, after, smaller)
			}
		}
		for range 3000 {
			s.Step(1. / 60)
		}
		p := pose()
		if !s.Settled() || s.Drawn(p) != p {
			rt.Fatalf("an error is left")
		}
	})
}

func TestDecay(t *testing.T) {
	for _, c := range []struct{ distance, angle, want float64 }{
		{.2, .5, .95}, {.25, math.Acos(.9) * 2, .95}, {.625, math.Acos(.7) * 2, .9}, {1, math.Acos(.5) * 2, .85}, {4, 3, .85},
	} {
		var s statesync.Smoother
		from := at(c.distance)
		from.Orientation = about(c.angle)
		s.Correct(from, at(0))
		s.Step(1. / 60)
		if distance, angle := s.Error(); math.Abs(distance-c.distance*c.want) > 1e-12 || math.Abs(angle-c.angle*c.want) > 1e-9 {
			t.Errorf("%g m and %g rad become %g and %g, want %g of them", c.distance, c.angle, distance, angle, c.want)
		}
	}
}

// TestFrameRate checks that the error after a given time hardly depends on the frame rate.
func TestFrameRate(t *testing.T) {
	left := func(from statesync.Pose, seconds float64, frames int) (d, a float64) {
		var s statesync.Smoother
		s.Correct(from, at(0))
		for range frames {
			s.Step(seconds / float64(frames))
		}
		return s.Error()
	}
	for _, c := range []struct {
		distance, angle, seconds, within float64
		frames                           []int
	}{
		{.25, .8, .5, 1e-9, []int{1, 7, 72, 500}},
		{4, 3, .5, .04, []int{1, 2, 5, 10, 15, 72, 120, 500}},
		{4, 3, 1, .04, []int{1, 3, 10, 30, 144, 1000}},
	} {
		from := at(c.distance)
		from.Orientation = about(c.angle)
		d, a := left(from, c.seconds, int(60*c.seconds))
		for _, frames := range c.frames {
			if e, b := left(from, c.seconds, frames); math.Abs(e-d) > c.within*d || math.Abs(b-a) > c.within*a {
				t.Errorf("%d frames in %g s leave %g, %g, at 60 a second %g, %g", frames, c.seconds, e, b, d, a)
			}
		}
	}
}

func TestSnap(t *testing.T) {
	var s statesync.Smoother
	for _, from := range []statesync.Pose{at(4), at(5), at(math.NaN()), {Position: schema.Vec3{X: 1}}} {
		s.Correct(at(1), at(0))
		s.Correct(from, at(0)) // on top of that
		if !s.Settled() {
			t.Errorf("an error of %+v is smoothed", from)
		}
		s.Reset()
	}
	s.Step(math.NaN())
	s.Step(-1)
	s.Correct(at(4), at(0))
	if s.Step(math.Inf(1)); !s.Settled() {
		t.Error("an error is left for ever")
	}
	if s.Correct(at(4.9), at(0)); s.Settled() {
		t.Error("an error below the bound is not smoothed")
	}
}

// TestSmoothedValues smooths an object in 2D without an orientation: its heading fades the short
// way round, and a number whose error is too large jumps alone.
func TestSmoothedValues(t *testing.T) {
	var s statesync.Smoother
	from := statesync.Pose{Position: schema.Vec3{X: 1}, Angles: [4]float64{179}, Numbers: [8]float64{1, 10}}
	to := statesync.Pose{Position: schema.Vec3{X: 1.5}, Angles: [4]float64{-171}, Numbers: [8]float64{1.5, 20}}
	s.Correct(from, to)
	drawn := s.Drawn(to)
	want := from
	want.Numbers[1] = 20
	if drawn != want {
		t.Errorf("drawn at %+v, want %+v", drawn, want)
	}
	last := 10.0
	for range 60 {
		s.Step(1. / 60)
		drawn = s.Drawn(to)
		left := math.Remainder(to.Angles[0]-drawn.Angles[0], 360)
		if left < 0 || left >= last && left != 0 {
			t.Fatalf("%v degrees are left after %v", left, last)
		}
		last = left
	}
	for range 600 {
		s.Step(1. / 60)
	}
	if drawn = s.Drawn(to); drawn != to || !s.Settled() {
		t.Errorf("drawn at %+v, want %+v", drawn, to)
	}
}
