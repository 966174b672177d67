package interpolate

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/pose"
	"github.com/uplink-rpc/uplink/schema"
)

// Pose is the part of an object that is interpolated: Position, Velocity, Orientation, Teleports,
// and up to four Angles and eight Numbers. It is the Pose of package statesync too.
type Pose = pose.Pose

// Adapter reads and writes the pose of an object.
type Adapter[T any] interface {
	// Pose returns the pose.
	Pose(object *T) Pose
	// SetPose sets the pose except Teleports. All other fields keep the values of the older
	// snapshot.
	SetPose(object *T, p Pose)
}

// Slerp interpolates orientations at constant angular velocity in the shorter direction. f is 0 at
// a and 1 at b; values outside extrapolate. The result has length 1. If one of a and b cannot be
// scaled to length 1, the result is the other one.
func Slerp(a, b schema.Quat, f float64) schema.Quat { return pose.Slerp(a, b, f) }

// Tagged returns an adapter by the tags of the struct T, and of the structs in it:
//
//	Position schema.Vec3    `interpolate:"position"`
//	Velocity schema.Vec3    `interpolate:"velocity"`
//	Rotation schema.Quat    `interpolate:"orientation"`
//	Jumps    uint8          `interpolate:"teleports"`
//	Turret   schema.Angle   `interpolate:"blend"`
//	Charge   float32        `interpolate:"blend"`
//
// Each is optional. Position and velocity may be a schema.Vec2, or floats with the tags position.x
// to velocity.z. An orientation may be a schema.Rotator or a schema.Angle, which turn in the
// shorter direction. The tag blend marks further angles, numbers, vectors and arrays of floats: up
// to four angles, including those of the orientation, and eight numbers. Teleports is an unsigned
// integer or a bool. Fields without a tag keep the values of the older snapshot. An error names the
// field with an invalid tag and lists the valid tags.
func Tagged[T any]() (Adapter[T], error) {
	f, err := pose.FieldsOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, fmt.Errorf("interpolate: %w", err)
	}
	return tagged[T]{f}, nil
}

type tagged[T any] struct{ fields *pose.Fields }

// Pose implements Adapter.
func (a tagged[T]) Pose(object *T) Pose { return a.fields.Get(unsafe.Pointer(object)) }

// SetPose implements Adapter.
func (a tagged[T]) SetPose(object *T, p Pose) { a.fields.Set(unsafe.Pointer(object), &p) }
