package pose

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Fields are the fields of a struct that its pose consists of, by their tags. They read and write
// poses without allocating.
type Fields struct {
	parts     []part
	angles    int     // used of Pose.Angles
	numbers   int     // used of Pose.Numbers
	teleports uintptr // offset of the count of jumps; the constant none if there is no such field
	size      uintptr // size of the teleports field in bytes
}

// part is consecutive values of a struct.
type part struct {
	from, to uintptr // offsets in the struct, and in a Pose
	n        int
	single   bool // float32
}

const none = ^uintptr(0)

// FieldsOf returns the fields of a struct type. An error names the field with an invalid tag, and
// the possible tags.
func FieldsOf(t reflect.Type) (*Fields, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct", t)
	}
	f := &Fields{teleports: none}
	if err := f.addStruct(t, 0); err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	return f, nil
}

func (f *Fields) addStruct(t reflect.Type, base uintptr) error {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, ok := field.Tag.Lookup("interpolate")
		var err error
		switch {
		case ok:
			err = f.add(tag, field.Type, base+field.Offset)
		case field.Type.Kind() == reflect.Struct:
			err = f.addStruct(field.Type, base+field.Offset)
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", field.Name, err)
		}
	}
	return nil
}

// shape describes the values of a Go type.
type shape uint8

const (
	other shape = iota
	numbers
	vector2
	vector3
	angles
	rotation
	count
)

// shapeOf returns the shape of a type, its number of values, and whether they are float32.
func shapeOf(t reflect.Type) (s shape, n int, single bool) {
	switch t {
	case reflect.TypeFor[schema.Vec2]():
		return vector2, 2, false
	case reflect.TypeFor[schema.Vec3]():
		return vector3, 3, false
	case reflect.TypeFor[schema.Rotator]():
		return angles, 3, false
	case reflect.TypeFor[schema.Quat]():
		return rotation, 4, false
	case reflect.TypeFor[schema.Angle]():
		return angles, 1, false
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return numbers, 1, t.Kind() == reflect.Float32
	case reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return count, 1, false
	case reflect.Array:
		if s, n, single = shapeOf(t.Elem()); n == 1 && (s == numbers || s == angles) {
			return s, t.Len(), single
		}
	default:
	}
	return other, 0, false
}

// tags returns the tags that a field of a type may have.
func tags(t reflect.Type) []string {
	switch s, n, _ := shapeOf(t); s {
	case numbers:
		if n == 1 {
			return []string{"blend", "position.x", "position.y", "position.z", "velocity.x", "velocity.y", "velocity.z"}
		}
		return []string{"blend"}
	case vector2, vector3:
		return []string{"position", "velocity", "blend"}
	case angles:
		return []string{"orientation", "blend"}
	case rotation:
		return []string{"orientation"}
	case count:
		return []string{"teleports"}
	case other:
	}
	return nil
}

func (f *Fields) add(tag string, t reflect.Type, offset uintptr) error {
	possible := tags(t)
	if !slices.Contains(possible, tag) {
		err := fmt.Errorf("interpolate:%q is not possible for a %v", tag, t)
		if len(possible) == 0 {
			return fmt.Errorf("%w, nor is another tag: possible are floats, arrays of them, and the vectors, angles and rotations of package schema", err)
		}
		return fmt.Errorf(`%w: possible are "%s"`, err, strings.Join(possible, `", "`))
	}
	s, n, single := shapeOf(t)
	if s == count {
		if f.teleports != none {
			return errors.New(`interpolate:"teleports" is there twice`)
		}
		f.teleports, f.size = offset, t.Size()
		return nil
	}
	to, err := f.target(tag, s, n)
	if err != nil {
		return err
	}
	p := part{offset, to, n, single}
	for _, o := range f.parts {
		if o.to < p.to+8*uintptr(p.n) && p.to < o.to+8*uintptr(o.n) {
			return fmt.Errorf("interpolate:%q is there twice", tag)
		}
	}
	f.parts = append(f.parts, p)
	return nil
}

// target returns the offset in a Pose of n values of a shape.
func (f *Fields) target(tag string, s shape, n int) (uintptr, error) {
	var p Pose
	base, axis, _ := strings.Cut(tag, ".")
	part := uintptr(strings.Index("xyz", axis)) * 8
	switch {
	case s == angles:
		if f.angles += n; f.angles > MaxAngles {
			return 0, fmt.Errorf("a type has at most %d angles", MaxAngles)
		}
		return unsafe.Offsetof(p.Angles) + 8*uintptr(f.angles-n), nil
	case base == "position":
		return unsafe.Offsetof(p.Position) + part, nil
	case base == "velocity":
		return unsafe.Offsetof(p.Velocity) + part, nil
	case base == "orientation":
		return unsafe.Offsetof(p.Orientation), nil
	}
	if f.numbers += n; f.numbers > MaxNumbers {
		return 0, fmt.Errorf("a type has at most %d blended numbers", MaxNumbers)
	}
	return unsafe.Offsetof(p.Numbers) + 8*uintptr(f.numbers-n), nil
}

// Get returns the pose of a struct.
func (f *Fields) Get(object unsafe.Pointer) (p Pose) {
	to := unsafe.Pointer(&p)
	for i := range f.parts {
		part := &f.parts[i]
		for k := range uintptr(part.n) {
			v := (*float64)(unsafe.Add(to, part.to+8*k))
			if part.single {
				*v = float64(*(*float32)(unsafe.Add(object, part.from+4*k)))
			} else {
				*v = *(*float64)(unsafe.Add(object, part.from+8*k))
			}
		}
	}
	if f.teleports == none {
		return p
	}
	switch jumps := unsafe.Add(object, f.teleports); f.size {
	case 1:
		p.Teleports = uint32(*(*uint8)(jumps))
	case 2:
		p.Teleports = uint32(*(*uint16)(jumps))
	default:
		p.Teleports = *(*uint32)(jumps)
	}
	return p
}

// Set sets the fields of a struct, except the count of jumps.
func (f *Fields) Set(object unsafe.Pointer, p *Pose) {
	from := unsafe.Pointer(p)
	for i := range f.parts {
		part := &f.parts[i]
		for k := range uintptr(part.n) {
			v := *(*float64)(unsafe.Add(from, part.to+8*k))
			if part.single {
				*(*float32)(unsafe.Add(object, part.from+4*k)) = float32(v)
			} else {
				*(*float64)(unsafe.Add(object, part.from+8*k)) = v
			}
		}
	}
}
