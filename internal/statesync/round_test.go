package statesync_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

type crate struct {
	Position schema.Vec3 `uplink:"resolution=0.000244140625,min=-32,max=32,velocity=Velocity"`
	Rotation schema.Quat `uplink:"bits=15,velocity=Spin"`
	Velocity schema.Vec3 `uplink:"resolution=0.001,min=-50,max=50"`
	Spin     schema.Vec3 `uplink:"resolution=0.001,min=-30,max=30"`
	Open     bool
	Heading  schema.Angle `uplink:"bits=12"`
	Label    string       `uplink:"max=9"`
	Mass     float64      `uplink:"-"`
}

type coarse struct {
	Rotation schema.Quat `uplink:"bits=3"`
}

// settle rounds a value and checks that rounding again and restoring its row change nothing.
func settle[T comparable](t rapid.TB, q *snapshot.Type[T], v T) T {
	must(t, q.Round(&v))
	again, got := v, v
	if err := q.Round(&again); err != nil || again != v {
		t.Fatalf("%+v rounds to %+v, %v", v, again, err)
	}
	set := q.Schema().NewSet()
	must(t, q.Add(set, snapshot.Object{}, &v))
	if err := q.Restore(&got, set.Row(0)); err != nil || got != v {
		t.Fatalf("%+v is restored as %+v, %v", v, got, err)
	}
	return v
}

func quantizer[T any](t testing.TB) *snapshot.Type[T] {
	q, err := snapshot.Compile[T]("Object")
	must(t, err)
	return q
}

// velocities returns those that the tags of T declare, at 60 Hz.
func velocities[T any](t testing.TB, q *snapshot.Type[T]) []schema.Velocity {
	s, err := q.Source().AtRate(60)
	must(t, err)
	return s.Velocities()
}

func TestRound(t *testing.T) {
	q, small := quantizer[crate](t), quantizer[coarse](t)
	rapid.Check(t, func(rt *rapid.T) {
		vec := func(most float64) schema.Vec3 {
			f := rapid.Float64Range(-most, most)
			return schema.Vec3{X: f.Draw(rt, "x"), Y: f.Draw(rt, "y"), Z: f.Draw(rt, "z")}
		}
		axis := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Map(rapid.IntRange(-1, 1), func(i int) float64 { return float64(i) * .5 }),
			rapid.Map(rapid.Float64Range(-1e-4, 1e-4), func(d float64) float64 { return .5 + d }))
		turn := schema.Quat{X: axis.Draw(rt, "qx"), Y: axis.Draw(rt, "qy"), Z: axis.Draw(rt, "qz"), W: axis.Draw(rt, "qw")}
		if math.Abs(turn.X)+math.Abs(turn.Y)+math.Abs(turn.Z)+math.Abs(turn.W) < .01 {
			turn.W = 1
		}
		v := crate{Position: vec(32), Rotation: turn, Velocity: vec(50), Spin: vec(30), Open: rapid.Bool().Draw(rt, "open"), Mass: 4.2}
		v.Heading, v.Label = schema.Angle(rapid.Float64Range(-400, 400).Draw(rt, "heading")), rapid.StringN(0, -1, 9).Draw(rt, "label")
		r := settle(rt, q, v)
		if r.Mass != 4.2 || r.Label != v.Label || r.Open != v.Open || math.Abs(r.Position.X-v.Position.X) > .00013 {
			rt.Fatalf("%+v rounds to %+v", v, r)
		}
		settle(rt, small, coarse{turn})
	})
}

// TestRoundOrientations rounds every coarse orientation.
func TestRoundOrientations(t *testing.T) {
	q := quantizer[coarse](t)
	for n := range int32(4 * 7 * 7 * 7) {
		var v coarse
		must(t, q.Restore(&v, []int32{n & 3, n/4%7 - 3, n/28%7 - 3, n/196 - 3}))
		settle(t, q, v)
	}
}

func TestVelocities(t *testing.T) {
	want := []schema.Velocity{{Field: "Position", Of: "Velocity", PerTick: schema.StepsPerTick(.001 / 60 / 0.000244140625)}, {Field: "Rotation", Of: "Spin", PerTick: schema.RadiansPerTick(.001 / 60)}}
	q := quantizer[crate](t)
	if got := velocities(t, q); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	v := new(crate)
	if n := allocs.PerRun(100, func() {
		*v = crate{Rotation: schema.Quat{W: 1}}
		if q.Round(v) != nil {
			t.Error("not rounded")
		}
	}); n != 0 {
		t.Errorf("%g allocations a call of Round", n)
	}
}
