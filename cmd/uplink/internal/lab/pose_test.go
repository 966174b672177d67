package lab

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace/sample"
)

// TestPoseOfAngles: the player of Portal 2 stands where its location is, and looks where its yaw
// points.
func TestPoseOfAngles(t *testing.T) {
	s := sample.Portal2().Schema
	p := NewPoser(s)
	if p.Moves() {
		t.Error("there is no velocity")
	}
	field := func(name string) int {
		return slices.IndexFunc(s.Fields(), func(f schema.Field) bool { return f.Name == name })
	}
	for i := range sample.Portal2().Frames {
		f := sample.Portal2().At(i)
		at, view := s.RestoreField(nil, f, field("Location")), s.RestoreField(nil, f, field("View"))
		if got := p.Pose(f); got != (Pose{X: at[0], Y: at[1], Heading: view[1] * math.Pi / 180}) {
			t.Fatalf("frame %d: %+v, location %v, view %v", i, got, at, view)
		}
	}
}

// TestPoseOfQuats: the car of Rocket League mostly drives forward, and goes where its velocity
// points.
func TestPoseOfQuats(t *testing.T) {
	car := sample.RocketLeague()
	p := NewPoser(car.Schema)
	if !p.Moves() {
		t.Error("there is a velocity")
	}
	const apart = 4
	all, forward, straight := 0, 0, 0
	for i := range len(car.Frames) - apart {
		a, b := p.Pose(car.At(i)), p.Pose(car.At(i+apart))
		dx, dy, speed := b.X-a.X, b.Y-a.Y, math.Hypot(a.VX, a.VY)
		if speed < 300 {
			continue
		}
		all++
		if dx*math.Cos(a.Heading)+dy*math.Sin(a.Heading) > 0 {
			forward++
		}
		if dx*a.VX+dy*a.VY > 0.9*math.Hypot(dx, dy)*speed {
			straight++
		}
	}
	if all < 500 || forward < all*8/10 || straight < all*9/10 {
		t.Errorf("of %d frames the car goes forward in %d, and where its velocity points in %d", all, forward, straight)
	}
}

// TestYaw turns about the vertical axis, after any roll about the actor's own.
func TestYaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn, roll := rapid.Float64Range(-3, 3).Draw(t, "turn"), rapid.Float64Range(-1, 1).Draw(t, "roll")
		sz, cz := math.Sincos(turn / 2)
		sx, cx := math.Sincos(roll / 2)
		// The product of both rotations, z after x.
		if got := yaw(cz*sx, sz*sx, sz*cx, cz*cx); math.Abs(got-turn) > 1e-9 {
			t.Fatalf("%v, want %v", got, turn)
		}
	})
}

// TestPoseOfOthers: a schema without what is drawn has a pose nevertheless.
func TestPoseOfOthers(t *testing.T) {
	s, err := schema.New("Shoot", 60, []schema.Field{{Name: "Weapon", Kind: schema.KindUint, Width: 8}})
	uplinktest.Must(t, err)
	if p := NewPoser(s); p.Moves() || p.Pose(s.NewFrame()) != (Pose{}) {
		t.Errorf("%+v", p.Pose(s.NewFrame()))
	}
}
