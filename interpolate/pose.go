package interpolate

import (
	"math"
	"time"

	"github.com/uplink-rpc/uplink/schema"
)

// Pose is what of an object is interpolated. An object that lacks a part leaves it zero and ignores it.
type Pose struct {
	Position schema.Vec3
	// Velocity is that of Position, in its unit, a second. Only Hermite and extrapolation after it read it.
	Velocity schema.Vec3
	// Orientation need not have length 1; a zero one stays so.
	Orientation schema.Quat
	// Teleports counts the jumps that the sender made with the object, and wraps. Between two snapshots in which it
	// differs the object stays at the first. A count, unlike a mark on one snapshot, tells of the jump even where that
	// snapshot is lost; a mark is told from the one before by changing, so a count modulo 2 is enough for jumps that
	// are not missed in pairs.
	Teleports uint32
}

// Adapter tells where an object has its pose.
type Adapter[T any] interface {
	// Pose reads it.
	Pose(object *T) Pose
	// SetPose writes position, velocity and orientation. The rest of the object is that of the older snapshot.
	SetPose(object *T, p Pose)
}

// blend is the pose at the share f, 0 to 1, of the time between a and b. The velocity is the one on the way.
func blend(m Method, a, b Pose, f float64, between time.Duration) Pose {
	if f <= 0 || a.Teleports != b.Teleports {
		return a
	}
	out := Pose{Orientation: Slerp(a.Orientation, b.Orientation, f), Teleports: a.Teleports}
	if m == Hermite && !rests(&a, &b) {
		out.Position, out.Velocity = cubic(a, b, f, between.Seconds())
		return out
	}
	out.Position = mix(a.Position, 1-f, b.Position, f)
	out.Velocity = mix(a.Velocity, 1-f, b.Velocity, f)
	return out
}

// still says that a pose stays what it is all the way: most objects rest, and cost little.
func still(m Method, a, b Pose) bool {
	return a == b && (m != Hermite || a.Velocity == schema.Vec3{})
}

// rests says that an object comes to rest, or begins to move, where it is at both ends. The spline would have it swing out
// and back.
func rests(a, b *Pose) bool {
	return a.Position == b.Position && (a.Velocity == schema.Vec3{} || b.Velocity == schema.Vec3{})
}

// cubic is the Hermite spline of positions and velocities, and its derivative, dt seconds being between a and b.
func cubic(a, b Pose, f, dt float64) (position, velocity schema.Vec3) {
	g := 1 - f
	position = mix(
		mix(a.Position, (1+2*f)*g*g, b.Position, f*f*(3-2*f)), 1,
		mix(a.Velocity, f*g*g*dt, b.Velocity, -f*f*g*dt), 1)
	velocity = mix(
		mix(a.Position, -6*f*g/dt, b.Position, 6*f*g/dt), 1,
		mix(a.Velocity, g*(1-3*f), b.Velocity, f*(3*f-2)), 1)
	return position, velocity
}

// extrapolate is the pose a time after b, which came some time after a. The orientation turns on as it did between them.
func extrapolate(m Method, a, b Pose, way, on time.Duration) Pose {
	f := float64(on) / float64(way)
	out := Pose{Velocity: b.Velocity, Orientation: Slerp(a.Orientation, b.Orientation, 1+f), Teleports: b.Teleports}
	if m == Hermite {
		out.Position = mix(b.Position, 1, b.Velocity, on.Seconds())
	} else {
		out.Position = mix(a.Position, -f, b.Position, 1+f)
	}
	return out
}

func mix(a schema.Vec3, p float64, b schema.Vec3, q float64) schema.Vec3 {
	return schema.Vec3{X: p*a.X + q*b.X, Y: p*a.Y + q*b.Y, Z: p*a.Z + q*b.Z}
}

// nearlySame is the cosine above which an arc is straight enough to mix its ends.
const nearlySame = 1 - 1e-6

// Slerp turns from a to b at constant speed the shorter way round, and is at the share f of it, or beyond for f outside
// 0 to 1. The result has length 1. Where one of them has no direction it is the other one.
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

// unit gives q the length 1, or says that it cannot: then it is zero.
func unit(q schema.Quat) (schema.Quat, bool) {
	n := math.Sqrt(q.X*q.X + q.Y*q.Y + q.Z*q.Z + q.W*q.W)
	if !(n > 0) || math.IsInf(n, 1) {
		return schema.Quat{}, false
	}
	return schema.Quat{X: q.X / n, Y: q.Y / n, Z: q.Z / n, W: q.W / n}, true
}
