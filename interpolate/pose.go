package interpolate

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/uplink-rpc/uplink/schema"
)

// Pose is the part of an object that is interpolated. Fields that an object does not have stay
// zero.
type Pose struct {
	Position schema.Vec3
	// Velocity is in units of Position per second. Only Hermite and its extrapolation use it.
	Velocity schema.Vec3
	// Orientation need not have length 1; zero stays zero.
	Orientation schema.Quat
	// Teleports counts the jumps of the object; it wraps around. Between two snapshots in which it
	// differs the object stays at the first. A count reveals a jump even if its snapshot was lost.
	// A count modulo 2 suffices unless two jumps are missed together.
	Teleports uint32
}

// Adapter reads and writes the pose of an object.
type Adapter[T any] interface {
	// Pose returns the pose.
	Pose(object *T) Pose
	// SetPose sets position, velocity and orientation. Other fields are those of the older
	// snapshot.
	SetPose(object *T, p Pose)
}

// blend returns the pose at the share f, 0 to 1, of the time between a and b.
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

// still reports whether a pose does not change, as that of most objects. It is fast.
func still(m Method, a, b Pose) bool {
	return a == b && (m != Hermite || a.Velocity == schema.Vec3{})
}

// rests reports whether an object starts or stops moving at the same position. The cubic would make
// it swing out and back.
func rests(a, b *Pose) bool {
	return a.Position == b.Position && (a.Velocity == schema.Vec3{} || b.Velocity == schema.Vec3{})
}

// cubic returns the Hermite interpolation of positions and velocities, and its derivative. dt is
// the time between a and b in seconds.
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

// extrapolate returns the pose a time on after b. interval is the time between a and b. The
// orientation continues to turn as it did between them.
func extrapolate(m Method, a, b Pose, interval, on time.Duration) Pose {
	f := float64(on) / float64(interval)
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

// Tagged returns an adapter by the tags of the struct T:
//
//	Position schema.Vec3 `interpolate:"position"`
//	Velocity schema.Vec3 `interpolate:"velocity"`
//	Rotation schema.Quat `interpolate:"orientation"`
//	Jumps    uint8       `interpolate:"teleports"`
//
// Each is optional; teleports is an unsigned integer or a bool. Fields without a tag are those of
// the older snapshot. An error names the field with the invalid tag.
func Tagged[T any]() (Adapter[T], error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("interpolate: %v is not a struct", t)
	}
	a := tagged[T]{position: none, velocity: none, orientation: none, teleports: none}
	if err := a.addStruct(t, 0); err != nil {
		return nil, fmt.Errorf("interpolate: %v: %w", t, err)
	}
	return &a, nil
}

// none is the offset of an absent field.
const none = ^uintptr(0)

// tagged is the offsets of fields in a T.
type tagged[T any] struct {
	position, velocity, orientation, teleports uintptr
	size                                       uintptr // of teleports
}

func (a *tagged[T]) addStruct(t reflect.Type, base uintptr) error {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("interpolate")
		switch {
		case !ok && f.Anonymous && f.Type.Kind() == reflect.Struct:
			if err := a.addStruct(f.Type, base+f.Offset); err != nil {
				return err
			}
		case ok:
			if err := a.add(tag, f.Type, base+f.Offset); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
	}
	return nil
}

func (a *tagged[T]) add(tag string, t reflect.Type, offset uintptr) error {
	vector := reflect.TypeFor[schema.Vec3]()
	field, known := map[string]struct {
		offset *uintptr
		want   reflect.Type
	}{
		"position": {&a.position, vector}, "velocity": {&a.velocity, vector},
		"orientation": {&a.orientation, reflect.TypeFor[schema.Quat]()}, "teleports": {&a.teleports, t},
	}[tag]
	counts := []reflect.Kind{reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32}
	switch {
	case !known:
		return fmt.Errorf(`unknown tag interpolate:%q, want "position", "velocity", "orientation" or "teleports"`, tag)
	case tag == "teleports" && !slices.Contains(counts, t.Kind()):
		return fmt.Errorf("interpolate:%q is a %v, want an unsigned integer of at most 32 bits, or a bool", tag, t)
	case t != field.want:
		return fmt.Errorf("interpolate:%q is a %v, want a %v", tag, t, field.want)
	case *field.offset != none:
		return fmt.Errorf("interpolate:%q is there twice", tag)
	case tag == "teleports":
		a.size = t.Size()
	}
	*field.offset = offset
	return nil
}

// Pose implements Adapter.
func (a *tagged[T]) Pose(object *T) (p Pose) {
	at := unsafe.Pointer(object)
	if a.position != none {
		p.Position = *(*schema.Vec3)(unsafe.Add(at, a.position))
	}
	if a.velocity != none {
		p.Velocity = *(*schema.Vec3)(unsafe.Add(at, a.velocity))
	}
	if a.orientation != none {
		p.Orientation = *(*schema.Quat)(unsafe.Add(at, a.orientation))
	}
	if a.teleports == none {
		return p
	}
	switch jumps := unsafe.Add(at, a.teleports); a.size {
	case 1:
		p.Teleports = uint32(*(*uint8)(jumps))
	case 2:
		p.Teleports = uint32(*(*uint16)(jumps))
	default:
		p.Teleports = *(*uint32)(jumps)
	}
	return p
}

// SetPose implements Adapter.
func (a *tagged[T]) SetPose(object *T, p Pose) {
	at := unsafe.Pointer(object)
	if a.position != none {
		*(*schema.Vec3)(unsafe.Add(at, a.position)) = p.Position
	}
	if a.velocity != none {
		*(*schema.Vec3)(unsafe.Add(at, a.velocity)) = p.Velocity
	}
	if a.orientation != none {
		*(*schema.Quat)(unsafe.Add(at, a.orientation)) = p.Orientation
	}
}
