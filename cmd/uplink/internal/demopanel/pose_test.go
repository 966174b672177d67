package demopanel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/sample"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestPose: the players of the samples stand where their locations are, look where their yaws or
// rotations point, and go where their velocities point.
func TestPose(t *testing.T) {
	for _, tr := range []*trace.Trace{sample.Portal2(), sample.RocketLeague()} {
		s := tr.Schema
		p := NewPoser(s)
		for i := range tr.Frames {
			f := tr.At(i)
			field := func(name string) []float64 {
				return s.RestoreField(nil, f, slices.IndexFunc(s.Fields(), func(f schema.Field) bool { return f.Name == name }))
			}
			at := field("Location")
			want := Pose{X: at[0], Y: at[1]}
			if p.Moves() {
				v, q := field("Velocity"), field("Rotation")
				want.VX, want.VY, want.Heading = v[0], v[1], yaw(q[0], q[1], q[2], q[3])
			} else {
				want.Heading = field("View")[1] * math.Pi / 180
			}
			if got := p.Pose(f); got != want || p.Moves() != (tr.Name == sample.RocketLeagueName) {
				t.Fatalf("%s, frame %d: %+v, want %+v", tr.Name, i, got, want)
			}
		}
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
