package statesync

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/pose"
	"github.com/uplink-rpc/uplink/schema"
)

// Smoothing configures a [Smoother]. Zero fields mean the defaults.
type Smoothing struct {
	// Slow is the share of a small error that remains after 1/60 s, and Fast that of a large error.
	// Both are above 0 and below 1; default 0.95 and 0.85. Fast is at most Slow.
	Slow, Fast float64
	// Slow applies to errors of up to the distance Near, and Fast to errors of the distance Far or
	// more, in the unit of positions; default 0.25 and 1. In between, the share is interpolated.
	// They apply to each of Pose.Numbers too.
	Near, Far float64
	// Turned and Spun are the same limits for orientations and angles. The measure of a rotation by
	// the angle a is 1 - cos(a/2); default 0.1 and 0.5, which are 52 and 120 degrees. Turned is at
	// most Spun.
	Turned, Spun float64
	// Snap is the distance from which on an error is not smoothed; default 5. Infinity means never.
	// A number whose own error is that large jumps alone.
	Snap float64
}

// fill sets the defaults. An error names the invalid field.
func (s *Smoothing) fill() error {
	for _, d := range []struct {
		name     string
		to       *float64
		v, below float64
	}{
		{"Slow", &s.Slow, .95, 1},
		{"Fast", &s.Fast, .85, 1},
		{"Near", &s.Near, .25, math.Inf(1)},
		{"Far", &s.Far, 1, math.Inf(1)},
		{"Turned", &s.Turned, .1, 1},
		{"Spun", &s.Spun, .5, 1},
	} {
		if *d.to == 0 {
			*d.to = d.v
		}
		if !(*d.to > 0 && *d.to < d.below) {
			return fmt.Errorf("statesync: Smoothing.%s is %v, want a number above 0 and below %v", d.name, *d.to, d.below)
		}
	}
	if s.Snap == 0 {
		s.Snap = 5
	}
	switch {
	case !(s.Snap > 0):
		return fmt.Errorf("statesync: Smoothing.Snap is %v, want a number above 0", s.Snap)
	case s.Fast > s.Slow:
		return fmt.Errorf("statesync: Smoothing.Fast is %v, want at most Slow, %v", s.Fast, s.Slow)
	case s.Near > s.Far:
		return fmt.Errorf("statesync: Smoothing.Near is %v, want at most Far, %v", s.Near, s.Far)
	case s.Turned > s.Spun:
		return fmt.Errorf("statesync: Smoothing.Turned is %v, want at most Spun, %v", s.Turned, s.Spun)
	}
	return nil
}

// Smaller errors are rounded to zero: in the unit of positions, and in radians.
const (
	minOffset = 1e-4
	minTurn   = 1e-4
)

// Smoother smooths the corrections of an object's simulation for drawing: the drawn pose continues
// from where it was and approaches the simulated one. The difference of the two poses is the error
// of the Smoother. The zero value uses the defaults, and its error is zero. Not safe for concurrent
// use.
type Smoother struct {
	cfg    Smoothing
	filled bool
	offset [3]float64
	turn   [3]float64 // axis times angle in radians
	// The errors of the angles, in degrees, and of the other numbers.
	angles  [pose.MaxAngles]float64
	numbers [pose.MaxNumbers]float64
}

// NewSmoother returns a smoother for drawn poses that equal the simulated ones. If a field of cfg
// is invalid, it returns a Go error that names the field.
func NewSmoother(cfg Smoothing) (Smoother, error) {
	if err := cfg.fill(); err != nil {
		return Smoother{}, err
	}
	return Smoother{cfg: cfg, filled: true}, nil
}

// Pose is the part of an object that is smoothed: all of it but Velocity and Teleports. An
// Orientation has length 1, or is zero in all poses of an object. It is the Pose of package
// interpolate, whose Tagged returns an adapter that reads and writes poses.
type Pose = pose.Pose

// Correct records that a correction changed the simulated pose. The drawn pose does not change,
// unless it is [Smoothing.Snap] or more away from the new simulated pose, or is not a number. In
// these cases it jumps to the new simulated pose.
func (s *Smoother) Correct(from, to Pose) {
	s.defaults()
	drawn := s.Drawn(from)
	at, is := drawn.Position, to.Position
	s.offset = [3]float64{at.X - is.X, at.Y - is.Y, at.Z - is.Z}
	s.turn = [3]float64{}
	none := schema.Quat{}
	if drawn.Orientation != none || to.Orientation != none {
		s.turn = quat.BetweenFloat(float(to.Orientation), float(drawn.Orientation))
	}
	for i := range s.angles {
		s.angles[i] = pose.Turn(to.Angles[i], drawn.Angles[i])
	}
	for i := range s.numbers {
		if s.numbers[i] = drawn.Numbers[i] - to.Numbers[i]; !(math.Abs(s.numbers[i]) < s.cfg.Snap) {
			s.numbers[i] = 0
		}
	}
	invalid := (drawn.Orientation == none) != (to.Orientation == none) || math.IsNaN(length(s.turn))
	if invalid || !(length(s.offset) < s.cfg.Snap) {
		s.Reset()
	}
}

// Reset sets the error to zero.
func (s *Smoother) Reset() { *s = Smoother{cfg: s.cfg, filled: s.filled} }

// Step advances time by dt seconds, at any frame rate. It does nothing if dt is not above 0.
func (s *Smoother) Step(dt float64) {
	s.defaults()
	for n := 0; dt > 0 && !s.Settled(); n++ {
		piece := dt
		if n < pieces && s.large() {
			piece = min(dt, 1./60)
		}
		s.fade(piece * 60)
		dt -= piece
	}
}

// pieces is the maximum number of steps of Step, since the remainder changes on the way.
const pieces = 120

// large reports whether an error fades faster than a small one.
func (s *Smoother) large() bool {
	large := length(s.offset) > s.cfg.Near || s.turned() > s.cfg.Turned
	for _, a := range s.angles {
		large = large || measure(radians(a)) > s.cfg.Turned
	}
	for _, v := range s.numbers {
		large = large || math.Abs(v) > s.cfg.Near
	}
	return large
}

// turned returns the measure of the turn.
func (s *Smoother) turned() float64 { return measure(length(s.turn)) }

// measure returns the measure of a rotation by an angle in radians: 1 less the dot product of its
// quaternion with the identity.
func measure(angle float64) float64 { return 1 - math.Cos(angle/2) }

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }

func (s *Smoother) fade(frames float64) {
	for i, a := range s.angles {
		if s.angles[i] *= math.Pow(s.factor(measure(radians(a)), s.cfg.Turned, s.cfg.Spun), frames); !(radians(math.Abs(s.angles[i])) >= minTurn) {
			s.angles[i] = 0
		}
	}
	for i, v := range s.numbers {
		if s.numbers[i] *= math.Pow(s.factor(math.Abs(v), s.cfg.Near, s.cfg.Far), frames); !(math.Abs(s.numbers[i]) >= minOffset) {
			s.numbers[i] = 0
		}
	}
	offset, turn := s.factor(length(s.offset), s.cfg.Near, s.cfg.Far), s.factor(s.turned(), s.cfg.Turned, s.cfg.Spun)
	shrink(&s.offset, math.Pow(offset, frames), minOffset)
	shrink(&s.turn, math.Pow(turn, frames), minTurn)
}

// shrink multiplies v by k, and rounds it to zero if it is then shorter than least.
func shrink(v *[3]float64, k, least float64) {
	for i := range v {
		v[i] *= k
	}
	if !(length(*v) >= least) {
		*v = [3]float64{}
	}
}

func (s *Smoother) factor(err, near, far float64) float64 {
	switch {
	case err <= near:
		return s.cfg.Slow
	case err >= far:
		return s.cfg.Fast
	}
	f := (err - near) / (far - near)
	return s.cfg.Slow*(1-f) + s.cfg.Fast*f
}

// Settled reports whether the error is zero.
func (s *Smoother) Settled() bool {
	return s.offset == [3]float64{} && s.turn == [3]float64{} && s.angles == [pose.MaxAngles]float64{} && s.numbers == [pose.MaxNumbers]float64{}
}

// Drawn returns the pose at which to draw an object that is simulated at p.
func (s *Smoother) Drawn(p Pose) Pose {
	p.Position.X += s.offset[0]
	p.Position.Y += s.offset[1]
	p.Position.Z += s.offset[2]
	for i, a := range s.angles {
		if a != 0 {
			p.Angles[i] = pose.Turn(0, p.Angles[i]+a)
		}
	}
	for i, v := range s.numbers {
		p.Numbers[i] += v
	}
	if s.turn != [3]float64{} {
		q := quat.ExpFloat(s.turn).Mul(float(p.Orientation))
		p.Orientation = schema.Quat{X: q[0], Y: q[1], Z: q[2], W: q[3]}
	}
	return p
}

// Error returns the distance of the drawn pose from the simulated one, and the angle in radians.
func (s *Smoother) Error() (distance, angle float64) { return length(s.offset), length(s.turn) }

func (s *Smoother) defaults() {
	if !s.filled {
		_ = s.cfg.fill() // the defaults are valid
		s.filled = true
	}
}

func float(q schema.Quat) quat.Float { return quat.Float{q.X, q.Y, q.Z, q.W} }

func length(v [3]float64) float64 { return math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) }
