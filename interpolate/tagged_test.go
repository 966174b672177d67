package interpolate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

type placed struct {
	Position schema.Vec3 `interpolate:"position"`
	Velocity schema.Vec3 `interpolate:"velocity"`
}

func TestTagged(t *testing.T) {
	type object struct {
		Name string
		placed
		Facing schema.Quat `interpolate:"orientation"`
		Jumps  uint16      `interpolate:"teleports"`
	}
	a, err := interpolate.Tagged[object]()
	must(t, err)
	want := interpolate.Pose{schema.Vec3{X: 1}, schema.Vec3{Y: 2}, schema.Quat{W: 1}, 65535}
	o := object{Name: "a", placed: placed{want.Position, want.Velocity}, Facing: want.Orientation, Jumps: 65535}
	if got := a.Pose(&o); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	moved := interpolate.Pose{schema.Vec3{X: 3}, schema.Vec3{Y: 4}, schema.Quat{X: 1}, 7}
	a.SetPose(&o, moved)
	moved.Teleports = want.Teleports // it is not written
	if got := a.Pose(&o); got != moved || o.Name != "a" {
		t.Errorf("got %+v, want %+v", got, moved)
	}
}

func TestTaggedKinds(t *testing.T) {
	type mark struct {
		A bool `interpolate:"teleports"`
	}
	type count struct {
		A uint32 `interpolate:"teleports"`
	}
	marks, err1 := interpolate.Tagged[mark]()
	counts, err2 := interpolate.Tagged[count]()
	nothing, err3 := interpolate.Tagged[struct{ A int }]()
	must(t, errors.Join(err1, err2, err3))
	for want, got := range map[uint32]interpolate.Pose{
		1: marks.Pose(&mark{true}), 1 << 31: counts.Pose(&count{1 << 31}), 0: nothing.Pose(&struct{ A int }{5}),
	} {
		if got != (interpolate.Pose{Teleports: want}) {
			t.Errorf("%+v, want %d teleports", got, want)
		}
	}
}

func TestTaggedErrors(t *testing.T) {
	for want, err := range map[string]error{
		"not a struct": errorOf(interpolate.Tagged[int]()),
		`field "A"`: errorOf(interpolate.Tagged[struct {
			A float64 `interpolate:"position"`
		}]()),
		"unknown tag": errorOf(interpolate.Tagged[struct {
			A float64 `interpolate:"place"`
		}]()),
		"twice": errorOf(interpolate.Tagged[struct {
			A, B schema.Vec3 `interpolate:"velocity"`
		}]()),
		"unsigned": errorOf(interpolate.Tagged[struct {
			A uint64 `interpolate:"teleports"`
		}]()),
		"want a schema.Quat": errorOf(interpolate.Tagged[struct {
			A schema.Vec3 `interpolate:"orientation"`
		}]()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func errorOf[T any](_ interpolate.Adapter[T], err error) error { return err }
