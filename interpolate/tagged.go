package interpolate

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/uplink-rpc/uplink/schema"
)

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
	var to *uintptr
	want := reflect.TypeFor[schema.Vec3]()
	switch tag {
	case "position":
		to = &a.position
	case "velocity":
		to = &a.velocity
	case "orientation":
		to, want = &a.orientation, reflect.TypeFor[schema.Quat]()
	case "teleports":
		to, a.size = &a.teleports, t.Size()
		switch t.Kind() {
		case reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32:
			want = t
		default:
			return fmt.Errorf("interpolate:%q is a %v, want an unsigned integer of at most 32 bits, or a bool", tag, t)
		}
	default:
		return fmt.Errorf(`unknown tag interpolate:%q, want "position", "velocity", "orientation" or "teleports"`, tag)
	}
	if t != want {
		return fmt.Errorf("interpolate:%q is a %v, want a %v", tag, t, want)
	}
	if *to != none {
		return fmt.Errorf("interpolate:%q is there twice", tag)
	}
	*to = offset
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
