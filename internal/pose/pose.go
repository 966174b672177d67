// Package pose is the part of objects that changes smoothly: which fields of a struct it consists
// of, and how two poses are blended. Playback of snapshots, lag compensation and the smoothing of
// corrections share it.
package pose

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// MaxNumbers and MaxAngles are the maximum numbers of Pose.Numbers and Pose.Angles of a type.
const (
	MaxNumbers = 8
	MaxAngles  = 4
)

// Pose is the part of an object that is interpolated. Fields that an object does not have stay
// zero.
type Pose struct {
	// Position is in the plane of X and Y for objects in 2D.
	Position schema.Vec3
	// Velocity is in units of Position per second. Only Hermite and its extrapolation use it.
	Velocity schema.Vec3
	// Orientation need not have length 1; zero stays zero.
	Orientation schema.Quat
	// Teleports counts the jumps of the object; it wraps around. Between two snapshots in which it
	// differs the object stays at the first. A count reveals a jump even if its snapshot was lost.
	// A count modulo 2 suffices unless two jumps are missed together.
	Teleports uint32
	// Angles are angles in degrees, which turn the short way round, and Numbers other numbers.
	Angles  [MaxAngles]float64
	Numbers [MaxNumbers]float64
}

// Blend returns the pose at the share f, 0 to 1, of the time between a and b, which is between
// seconds.
func Blend(hermite bool, a, b *Pose, f, between float64) Pose {
	if f <= 0 || a.Teleports != b.Teleports {
		return *a
	}
	out := Pose{Orientation: Slerp(a.Orientation, b.Orientation, f), Teleports: a.Teleports}
	out.mixValues(a, b, f)
	if hermite && !rests(a, b) {
		out.Position, out.Velocity = cubic(a, b, f, between)
		return out
	}
	out.Position = mix(a.Position, 1-f, b.Position, f)
	out.Velocity = mix(a.Velocity, 1-f, b.Velocity, f)
	return out
}

// Still reports whether a pose does not change, which is true of most objects. It is fast.
func Still(hermite bool, a, b *Pose) bool {
	return *a == *b && (!hermite || a.Velocity == schema.Vec3{})
}

// Extrapolate returns the pose a time on after b. interval is the time between a and b, both are in
// seconds. Angles and orientation continue to turn as they did between them.
func Extrapolate(hermite bool, a, b *Pose, interval, on float64) Pose {
	f := on / interval
	out := Pose{Velocity: b.Velocity, Orientation: Slerp(a.Orientation, b.Orientation, 1+f), Teleports: b.Teleports}
	out.mixValues(a, b, 1+f)
	if hermite {
		out.Position = mix(b.Position, 1, b.Velocity, on)
	} else {
		out.Position = mix(a.Position, -f, b.Position, 1+f)
	}
	return out
}

// mixValues sets angles and numbers to those at f, which is 0 at a and 1 at b.
func (p *Pose) mixValues(a, b *Pose, f float64) {
	p.Angles, p.Numbers = a.Angles, a.Numbers
	if a.Angles != b.Angles {
		for i := range p.Angles {
			if turn := Turn(a.Angles[i], b.Angles[i]); turn != 0 {
				p.Angles[i] = Turn(0, a.Angles[i]+f*turn)
			}
		}
	}
	if a.Numbers != b.Numbers {
		for i := range p.Numbers {
			p.Numbers[i] = (1-f)*a.Numbers[i] + f*b.Numbers[i]
		}
	}
}

// Turn returns the turn from a to b the short way round, at least -180 and less than 180 degrees.
// It is 0 if that is not a number.
func Turn(a, b float64) float64 {
	d := math.Remainder(b-a, 360)
	switch {
	case math.IsNaN(d):
		return 0
	case d == 180:
		return -180
	}
	return d
}

// rests reports whether an object starts or stops moving at the same position. The cubic would make
// it swing out and back.
func rests(a, b *Pose) bool {
	return a.Position == b.Position && (a.Velocity == schema.Vec3{} || b.Velocity == schema.Vec3{})
}

// cubic returns the Hermite interpolation of positions and velocities, and its derivative. dt is
// the time between a and b in seconds.
func cubic(a, b *Pose, f, dt float64) (position, velocity schema.Vec3) {
	g := 1 - f
	position = mix(
		mix(a.Position, (1+2*f)*g*g, b.Position, f*f*(3-2*f)), 1,
		mix(a.Velocity, f*g*g*dt, b.Velocity, -f*f*g*dt), 1)
	velocity = mix(
		mix(a.Position, -6*f*g/dt, b.Position, 6*f*g/dt), 1,
		mix(a.Velocity, g*(1-3*f), b.Velocity, f*(3*f-2)), 1)
	return position, velocity
}

func mix(a schema.Vec3, p float64, b schema.Vec3, q float64) schema.Vec3 {
	return schema.Vec3{X: p*a.X + q*b.X, Y: p*a.Y + q*b.Y, Z: p*a.Z + q*b.Z}
}

// nearlySame is the cosine above which linear interpolation replaces slerp.
const nearlySame = 1 - 1e-6

// Slerp interpolates orientations at constant angular velocity in the shorter direction. f is 0 at
// a and 1 at b; values outside extrapolate. The result has length 1. If one of a and b cannot be
// scaled to length 1, the result is the other one.
func Slerp(a, b schema.Quat, f float64) schema.Quat {
	a, okA := unit(a)
	b, okB := unit(b)
	switch {
	case !okA:
		return b
	case !okB:
		return a
	}
	dot := a.X*b.X + a.Y*b.Y + a.Z*b.Z + a.W*b.W
	if dot < 0 {
		b, dot = schema.Quat{X: -b.X, Y: -b.Y, Z: -b.Z, W: -b.W}, -dot
	}
	p, q := 1-f, f
	if dot < nearlySame {
		angle := math.Acos(dot)
		p, q = math.Sin(p*angle), math.Sin(q*angle)
	}
	out, _ := unit(schema.Quat{X: p*a.X + q*b.X, Y: p*a.Y + q*b.Y, Z: p*a.Z + q*b.Z, W: p*a.W + q*b.W})
	return out
}

// unit returns q with length 1, or zero and false if that is impossible.
func unit(q schema.Quat) (schema.Quat, bool) {
	n := math.Sqrt(q.X*q.X + q.Y*q.Y + q.Z*q.Z + q.W*q.W)
	if !(n > 0) || math.IsInf(n, 1) {
		return schema.Quat{}, false
	}
	return schema.Quat{X: q.X / n, Y: q.Y / n, Z: q.Z / n, W: q.W / n}, true
}
