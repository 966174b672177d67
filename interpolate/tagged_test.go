package interpolate

import (
	"strings"
	"testing"

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
	a, err := Tagged[object]()
	if err != nil {
		t.Fatal(err)
	}
	want := Pose{schema.Vec3{X: 1}, schema.Vec3{Y: 2}, schema.Quat{W: 1}, 65535}
	o := object{Name: "a", placed: placed{want.Position, want.Velocity}, Facing: want.Orientation, Jumps: 65535}
	if got := a.Pose(&o); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	moved := Pose{schema.Vec3{X: 3}, schema.Vec3{Y: 4}, schema.Quat{X: 1}, 7}
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
	a, err := Tagged[mark]()
	if err != nil {
		t.Fatal(err)
	}
	if p := a.Pose(&mark{true}); p != (Pose{Teleports: 1}) {
		t.Errorf("%+v", p)
	}
	type count struct {
		A uint32 `interpolate:"teleports"`
	}
	b, err := Tagged[count]()
	if err != nil {
		t.Fatal(err)
	}
	if p := b.Pose(&count{1 << 31}); p != (Pose{Teleports: 1 << 31}) {
		t.Errorf("%+v", p)
	}
	nothing, err := Tagged[struct{ A int }]()
	if err != nil {
		t.Fatal(err)
	}
	if p := nothing.Pose(&struct{ A int }{5}); p != (Pose{}) {
		t.Errorf("without tags: %+v", p)
	}
}

func TestTaggedErrors(t *testing.T) {
	for want, err := range map[string]error{
		"not a struct": errorOf(Tagged[int]()),
		`field "A"`: errorOf(Tagged[struct {
			A float64 `interpolate:"position"`
		}]()),
		"unknown tag": errorOf(Tagged[struct {
			A float64 `interpolate:"place"`
		}]()),
		"twice": errorOf(Tagged[struct {
			A, B schema.Vec3 `interpolate:"velocity"`
		}]()),
		"unsigned": errorOf(Tagged[struct {
			A uint64 `interpolate:"teleports"`
		}]()),
		"want a schema.Quat": errorOf(Tagged[struct {
			A schema.Vec3 `interpolate:"orientation"`
		}]()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func errorOf[T any](_ Adapter[T], err error) error { return err }
