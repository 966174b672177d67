package statesync

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// Smoothing configures a [Smoother]. Zero fields mean the defaults.
type Smoothing struct {
	// Slow and Fast are the remainders of a small and a large error after 1/60 s, above 0 and below
	// 1; default 0.95 and 0.85. Fast is at most Slow.
	Slow, Fast float64
	// Near and Far are the distances up to which Slow applies, and from which Fast does, in the
	// unit of positions; default 0.25 and 1. In between, the remainder is interpolated.
	Near, Far float64
	// Turned and Spun are the same for orientations, as 1 less the dot product with the identity;
	// default 0.1 and 0.5, which are 52 and 120 degrees. Turned is at most Spun.
	Turned, Spun float64
	// Snap is the distance from which on an error is not smoothed; default 5. Infinity means never.
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
	// Smaller errors are rounded to zero: in the unit of positions, and in radians.
	minOffset = 1e-4
	minTurn   = 1e-4
)

// Smoother smooths the corrections of an object's simulation for drawing: the drawn pose
// continues from where it was and approaches the simulated one. The zero value uses the defaults
// and has no error. Not safe for concurrent use.
type Smoother struct {
	cfg    Smoothing
	filled bool
	offset schema.Vec3
	turn   schema.Quat // the zero value is the identity
}

// NewSmoother returns a smoother without an error. The error result names the invalid field.
func NewSmoother(cfg Smoothing) (Smoother, error) {
	if err := cfg.fill(); err != nil {
		return Smoother{}, err
	}
	return Smoother{cfg: cfg, filled: true}, nil
}

// Pose is the position and orientation of an object.
type Pose struct {
	Position    schema.Vec3
	Orientation schema.Quat // of length 1
}

// Correct records that the simulated pose changed from one to another. The drawn pose does not
// change, unless it is Snap or more away or not a number; then it jumps.
func (s *Smoother) Correct(from, to Pose) {
	s.defaults()
	drawn := s.Drawn(from)
	s.offset = schema.Vec3{X: drawn.Position.X - to.Position.X, Y: drawn.Position.Y - to.Position.Y, Z: drawn.Position.Z - to.Position.Z}
	s.turn = unit(mul(drawn.Orientation, conjugate(to.Orientation)))
	if !(length(s.offset) < s.cfg.Snap) || !(math.Abs(s.turn.W) <= 1) {
		s.Reset()
	}
}

// Reset sets the error to zero.
func (s *Smoother) Reset() { s.offset, s.turn = schema.Vec3{}, schema.Quat{} }

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

// pieces is the maximum number of steps of 1/60 s into which Step divides dt, since the remainder
// of a large error changes on the way.
const pieces = 120

// large reports whether the error fades faster than a small one.
func (s *Smoother) large() bool {
	return length(s.offset) > s.cfg.Near || s.turn != schema.Quat{} && 1-math.Abs(s.turn.W) > s.cfg.Turned
}

// fade advances time by frames of 1/60 s.
func (s *Smoother) fade(frames float64) {
	k := math.Pow(s.factor(length(s.offset), s.cfg.Near, s.cfg.Far), frames)
	s.offset = schema.Vec3{X: s.offset.X * k, Y: s.offset.Y * k, Z: s.offset.Z * k}
	if !(length(s.offset) >= minOffset) {
		s.offset = schema.Vec3{}
	}
	if s.turn != (schema.Quat{}) {
		s.turn = part(s.turn, math.Pow(s.factor(1-math.Abs(s.turn.W), s.cfg.Turned, s.cfg.Spun), frames))
	}
}

// factor returns the remainder of an error after 1/60 s.
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
func (s *Smoother) Settled() bool { return s.offset == schema.Vec3{} && s.turn == schema.Quat{} }

// Drawn returns the pose at which to draw an object that is simulated at p.
func (s *Smoother) Drawn(p Pose) Pose {
	p.Position.X += s.offset.X
	p.Position.Y += s.offset.Y
	p.Position.Z += s.offset.Z
	if s.turn != (schema.Quat{}) {
		p.Orientation = unit(mul(s.turn, p.Orientation))
	}
	return p
}

// Error returns the distance of the drawn pose from the simulated one, and the angle in radians.
func (s *Smoother) Error() (distance, angle float64) {
	if s.turn != (schema.Quat{}) {
		angle = angleOf(s.turn)
	}
	return length(s.offset), angle
}

func (s *Smoother) defaults() {
	if !s.filled {
		_ = s.cfg.fill() // of defaults
		s.filled = true
	}
}

// part returns the fraction k of a rotation, or the identity if it is small.
func part(q schema.Quat, k float64) schema.Quat {
	angle := angleOf(q) * k
	n := math.Sqrt(q.X*q.X + q.Y*q.Y + q.Z*q.Z)
	if !(angle >= minTurn) || n == 0 {
		return schema.Quat{}
	}
	f := math.Copysign(math.Sin(angle/2)/n, q.W)
	return schema.Quat{X: q.X * f, Y: q.Y * f, Z: q.Z * f, W: math.Cos(angle / 2)}
}

// angleOf returns the angle of a rotation, 0 to pi.
func angleOf(q schema.Quat) float64 {
	return 2 * math.Atan2(math.Sqrt(q.X*q.X+q.Y*q.Y+q.Z*q.Z), math.Abs(q.W))
}

func length(v schema.Vec3) float64 { return math.Sqrt(v.X*v.X + v.Y*v.Y + v.Z*v.Z) }

func conjugate(q schema.Quat) schema.Quat {
	return schema.Quat{X: -q.X, Y: -q.Y, Z: -q.Z, W: q.W}
}

// mul returns the rotation by b and then by a.
func mul(a, b schema.Quat) schema.Quat {
	return schema.Quat{
		X: a.W*b.X + a.X*b.W + a.Y*b.Z - a.Z*b.Y, Y: a.W*b.Y - a.X*b.Z + a.Y*b.W + a.Z*b.X,
		Z: a.W*b.Z + a.X*b.Y - a.Y*b.X + a.Z*b.W, W: a.W*b.W - a.X*b.X - a.Y*b.Y - a.Z*b.Z,
	}
}

func unit(q schema.Quat) schema.Quat {
	n := math.Sqrt(q.X*q.X + q.Y*q.Y + q.Z*q.Z + q.W*q.W)
	return schema.Quat{X: q.X / n, Y: q.Y / n, Z: q.Z / n, W: q.W / n}
}
