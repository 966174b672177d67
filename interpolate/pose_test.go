package interpolate_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

func vectors(most float64) *rapid.Generator[schema.Vec3] {
	f := rapid.Float64Range(-most, most)
	return rapid.Custom(func(t *rapid.T) schema.Vec3 {
		return schema.Vec3{X: f.Draw(t, "x"), Y: f.Draw(t, "y"), Z: f.Draw(t, "z")}
	})
}

// turn returns the rotation by an angle about an axis.
func turn(axis schema.Vec3, angle float64) schema.Quat {
	n := math.Sqrt(axis.X*axis.X + axis.Y*axis.Y + axis.Z*axis.Z)
	s := math.Sin(angle/2) / n
	return schema.Quat{X: axis.X * s, Y: axis.Y * s, Z: axis.Z * s, W: math.Cos(angle / 2)}
}

func near(a, b schema.Vec3, most float64) bool {
	return math.Abs(a.X-b.X) <= most && math.Abs(a.Y-b.Y) <= most && math.Abs(a.Z-b.Z) <= most
}

// same reports whether two orientations are equal; q and -q are.
func same(a, b schema.Quat, most float64) bool {
	return math.Abs(math.Abs(a.X*b.X+a.Y*b.Y+a.Z*b.Z+a.W*b.W)-1) <= most
}

// TestHermiteIsExactOnCubics checks that paths x = a + bt + ct² + dt³ are reproduced exactly.
func TestHermiteIsExactOnCubics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := vectors(10)
		c := [4]schema.Vec3{v.Draw(t, "a"), v.Draw(t, "b"), v.Draw(t, "c"), v.Draw(t, "d")}
		path := func(at time.Duration) (p, v schema.Vec3) {
			s := at.Seconds()
			each := func(a, b, c, d float64) (float64, float64) { return a + s*(b+s*(c+s*d)), b + s*(2*c+s*3*d) }
			p.X, v.X = each(c[0].X, c[1].X, c[2].X, c[3].X)
			p.Y, v.Y = each(c[0].Y, c[1].Y, c[2].Y, c[3].Y)
			p.Z, v.Z = each(c[0].Z, c[1].Z, c[2].Z, c[3].Z)
			return p, v
		}
		b, err := interpolate.New(things{}, interpolate.Config{Interval: 100 * ms, Method: interpolate.Hermite})
		must(t, err)
		last := time.Duration(0)
		for i, gap := range rapid.SliceOfN(rapid.IntRange(1, 900), 2, 8).Draw(t, "gaps") {
			if i > 0 {
				last += time.Duration(gap) * ms
			}
			var o thing
			o.pose.Position, o.pose.Velocity = path(last)
			must(t, b.Add(last, last, []uint32{7}, []thing{o}))
		}
		at := time.Duration(rapid.Int64Range(0, int64(last)).Draw(t, "at"))
		var s interpolate.Sample[thing]
		if !b.At(at, &s) {
			t.Fatal("nothing is shown")
		}
		p, v1 := path(at)
		if got := s.Objects[0].pose; !near(got.Position, p, 1e-6) || !near(got.Velocity, v1, 1e-4) {
			t.Fatalf("at %v: %+v, want %v %v", at, got, p, v1)
		}
	})
}

// TestLinearStaysOnTheLine checks that the share of the distance is the share of the time.
func TestLinearStaysOnTheLine(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	add(t, b, 0, moving(1, 1000))
	add(t, b, 100*ms, moving(3, -1000))
	for at, want := range map[time.Duration]float64{0: 1, 25 * ms: 1.5, 50 * ms: 2, 100 * ms: 3} {
		if got := only(t, b, at).pose.Position.X; math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}

// TestHermiteKeepsVelocities checks that on either side of a snapshot the path has its velocity.
func TestHermiteKeepsVelocities(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Method: interpolate.Hermite})
	for i, o := range []thing{moving(0, 2), moving(1, -3), moving(-1, 5)} {
		add(t, b, time.Duration(i)*100*ms, o)
	}
	const step = 10 * time.Microsecond
	middle := only(t, b, 100*ms).pose.Position.X
	before, after := only(t, b, 100*ms-step).pose.Position.X, only(t, b, 100*ms+step).pose.Position.X
	for _, slope := range []float64{(middle - before) / step.Seconds(), (after - middle) / step.Seconds()} {
		if math.Abs(slope+3) > 0.02 {
			t.Errorf("slope %v at a snapshot whose velocity is -3", slope)
		}
	}
}

// TestHermiteRests checks that an object that stops or starts does not swing, but one that flies up
// and falls back does.
func TestHermiteRests(t *testing.T) {
	for _, c := range []struct{ from, to, want float64 }{{0, 0, 1}, {4, 0, 1}, {0, -4, 1}, {4, -4, 1.1}} {
		b := newBuffer(t, interpolate.Config{Method: interpolate.Hermite})
		add(t, b, 0, moving(1, c.from))
		add(t, b, 100*ms, moving(1, c.to))
		if got := only(t, b, 50*ms).pose.Position.X; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("from %v to %v: at %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// TestSlerp checks for constant angular velocity in the shorter direction, for all signs and
// lengths.
func TestSlerp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axis := vectors(1).Filter(func(v schema.Vec3) bool { return v.X*v.X+v.Y*v.Y+v.Z*v.Z > 0.01 }).Draw(t, "axis")
		from := rapid.Float64Range(-math.Pi, math.Pi).Draw(t, "from")
		by := rapid.Float64Range(-3.1, 3.1).Draw(t, "by")
		f := rapid.Float64Range(0, 1).Draw(t, "f")
		length := rapid.Float64Range(0.1, 10).Draw(t, "length") * float64(1-2*rapid.IntRange(0, 1).Draw(t, "sign"))
		a, b := turn(axis, from), turn(axis, from+by)
		long := schema.Quat{X: b.X * length, Y: b.Y * length, Z: b.Z * length, W: b.W * length}
		got := interpolate.Slerp(a, long, f)
		if !same(got, turn(axis, from+f*by), 1e-9) {
			t.Fatalf("%v, want %v", got, turn(axis, from+f*by))
		}
		if n := got.X*got.X + got.Y*got.Y + got.Z*got.Z + got.W*got.W; math.Abs(n-1) > 1e-9 {
			t.Fatalf("length² %v", n)
		}
	})
}

func TestSlerpWithoutDirection(t *testing.T) {
	q := schema.Quat{X: 0.6, W: 0.8}
	for _, none := range []schema.Quat{{}, {X: math.NaN()}, {W: math.Inf(1)}} {
		if got := interpolate.Slerp(none, q, 0.5); !same(got, q, 1e-12) {
			t.Errorf("%v and %v: %v", none, q, got)
		}
		if got := interpolate.Slerp(q, none, 0.5); !same(got, q, 1e-12) {
			t.Errorf("%v and %v: %v", q, none, got)
		}
	}
	if got := interpolate.Slerp(schema.Quat{}, schema.Quat{}, 0.5); got != (schema.Quat{}) {
		t.Error(got)
	}
}

// TestNearest checks that snapshots are shown unchanged.
func TestNearest(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Method: interpolate.Nearest})
	add(t, b, 0, still(0))
	add(t, b, 100*ms, still(10))
	for at, want := range map[time.Duration]float64{0: 0, 49 * ms: 0, 51 * ms: 10, 100 * ms: 10, 150 * ms: 10} {
		if got := only(t, b, at).pose.Position.X; got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}
