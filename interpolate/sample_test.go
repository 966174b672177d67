package interpolate_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
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

// TestAt shows one object at several times. All but the pose are those of the last snapshot.
func TestAt(t *testing.T) {
	type snapshots map[int]thing // by server time in ms
	type positions map[int]float64
	const hour = 3_600_000
	linear := interpolate.Config{Extrapolate: 200 * ms}
	hermite := interpolate.Config{Method: interpolate.Hermite, Extrapolate: 200 * ms}
	nearest := interpolate.Config{Method: interpolate.Nearest, Gap: time.Second}
	rests := interpolate.Config{Method: interpolate.Hermite}
	gap := interpolate.Config{Gap: time.Second, Extrapolate: 100 * ms}
	jumped := moving(100, 5)
	jumped.pose.Teleports = 1
	for name, c := range map[string]struct {
		cfg       interpolate.Config
		snapshots snapshots
		want      positions
	}{
		"linear":            {linear, snapshots{0: moving(1, 1000), 100: moving(3, -1000)}, positions{0: 1, 25: 1.5, 50: 2, 100: 3}},
		"nearest":           {nearest, snapshots{0: still(0), 100: still(10)}, positions{0: 0, 49: 0, 51: 10, 100: 10, 150: 10}},
		"outside":           {rests, snapshots{0: moving(1, 50), 100: moving(6, 50)}, positions{-hour: 1, -1: 1, 101: 6, hour: 6}},
		"beyond, linear":    {linear, snapshots{0: moving(0, 50), 100: moving(2, 50)}, positions{150: 3, 300: 6, 301: 6, hour: 6}},
		"beyond, Hermite":   {hermite, snapshots{0: moving(0, 50), 100: moving(2, 50)}, positions{150: 4.5, 300: 12, 301: 12, hour: 12}},
		"jump, linear":      {linear, snapshots{0: moving(0, 5), 300: jumped}, positions{0: 0, 1: 0, 299: 0, 300: 100, 450: 100}},
		"jump, Hermite":     {hermite, snapshots{0: moving(0, 5), 300: jumped}, positions{0: 0, 1: 0, 299: 0, 300: 100, 450: 100}},
		"gap":               {gap, snapshots{0: still(0), 1001: still(10)}, positions{900: 0, 1050: 10}},
		"gap, nearest":      {nearest, snapshots{0: still(0), 1001: still(10)}, positions{900: 0}},
		"no gap":            {gap, snapshots{0: still(0), 1000: still(10)}, positions{900: 9, 1050: 10.5}},
		"at rest":           {rests, snapshots{0: moving(1, 0), 100: moving(1, 0)}, positions{50: 1}},
		"stops":             {rests, snapshots{0: moving(1, 4), 100: moving(1, 0)}, positions{50: 1}},
		"starts":            {rests, snapshots{0: moving(1, 0), 100: moving(1, -4)}, positions{50: 1}},
		"flies up and back": {rests, snapshots{0: moving(1, 4), 100: moving(1, -4)}, positions{50: 1.1}},
	} {
		b := newBuffer(t, c.cfg)
		times := slices.Sorted(maps.Keys(c.snapshots))
		last := time.Duration(times[1]) * ms
		for i, at := range times {
			o := c.snapshots[at]
			o.flags = uint16(i)
			add(t, b, time.Duration(at)*ms, o)
		}
		for n, want := range c.want {
			at := time.Duration(n) * ms
			var s interpolate.Sample[thing]
			if !b.At(at, &s) || len(s.Objects) != 1 || s.IDs[0] != 7 || s.Time != at || s.Starved != (at > last) {
				t.Fatalf("%s at %v: %+v", name, at, s)
			}
			got := s.Objects[0]
			if x := got.pose.Position.X; math.Abs(x-want) > 1e-9 {
				t.Errorf("%s at %v: %v, want %v", name, at, x, want)
			}
			if second := got.flags == 1; c.cfg.Method != interpolate.Nearest && second != (at >= last) {
				t.Errorf("%s at %v: flags %d", name, at, got.flags)
			}
		}
	}
}

// TestExtrapolatedTurn checks that an object continues to turn for Config.Extrapolate.
func TestExtrapolatedTurn(t *testing.T) {
	axis := schema.Vec3{Z: 1}
	for _, m := range []interpolate.Method{interpolate.Linear, interpolate.Hermite} {
		b := newBuffer(t, interpolate.Config{Method: m, Extrapolate: 200 * ms})
		o := still(0)
		add(t, b, 0, o)
		o.pose.Orientation = turn(axis, 0.1)
		add(t, b, 100*ms, o)
		for at, angle := range map[time.Duration]float64{150 * ms: 0.15, 300 * ms: 0.3, time.Hour: 0.3} {
			if got := only(t, b, at).pose.Orientation; !same(got, turn(axis, angle), 1e-9) {
				t.Errorf("method %d at %v: turned %v", m, at, got)
			}
		}
	}
}

// TestObjectsComeAndGo checks that the objects are those of the last snapshot.
func TestObjectsComeAndGo(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	var s interpolate.Sample[thing]
	if b.At(0, &s) || b.Sample(0, &s) {
		t.Error("an empty buffer shows something")
	}
	must(t, b.Add(0, 0, []uint32{1, 3, 5, 9}, []thing{still(1), still(3), still(5), still(9)}))
	must(t, b.Add(100*ms, 100*ms, []uint32{2, 3, 8, 9}, []thing{still(102), still(103), still(108), still(109)}))
	b.At(50*ms, &s)
	if !slices.Equal(s.IDs, []uint32{1, 3, 5, 9}) {
		t.Fatal(s.IDs)
	}
	for i, want := range []float64{1, 53, 5, 59} {
		if got := s.Objects[i].pose.Position.X; math.Abs(got-want) > 1e-12 {
			t.Errorf("object %d: %v, want %v", s.IDs[i], got, want)
		}
	}
	if b.At(100*ms, &s); !slices.Equal(s.IDs, []uint32{2, 3, 8, 9}) || s.Objects[0] != still(102) {
		t.Error(s)
	}
}

// TestAnyOrder checks that the order of arrival has no influence.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 12
		c := interpolate.Config{Interval: 50 * ms, Method: interpolate.Hermite, Snapshots: n}
		one, err1 := interpolate.New(things{}, c)
		two, err2 := interpolate.New(things{}, c)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		put := func(b *buffer, now time.Duration, k int) {
			at := time.Duration(k) * 50 * ms
			must(t, b.Add(now, at, []uint32{7}, []thing{moving(float64(k*k), float64(k))}))
		}
		numbers := make([]int, n)
		for k := range numbers {
			numbers[k] = k
			put(one, time.Duration(k)*50*ms, k)
		}
		for i, k := range rapid.Permutation(numbers).Draw(t, "order") {
			put(two, time.Duration(i)*50*ms, k)
		}
		at := time.Duration(rapid.IntRange(-100, 800).Draw(t, "at")) * ms
		var s, u interpolate.Sample[thing]
		one.At(at, &s)
		two.At(at, &u)
		if s.Objects[0] != u.Objects[0] || s.Starved != u.Starved {
			t.Fatalf("at %v: %+v and %+v", at, s, u)
		}
	})
}

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
	want := interpolate.Pose{Position: schema.Vec3{X: 1}, Velocity: schema.Vec3{Y: 2}, Orientation: schema.Quat{W: 1}, Teleports: 65535}
	o := object{Name: "a", placed: placed{want.Position, want.Velocity}, Facing: want.Orientation, Jumps: 65535}
	if got := a.Pose(&o); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	moved := interpolate.Pose{Position: schema.Vec3{X: 3}, Velocity: schema.Vec3{Y: 4}, Orientation: schema.Quat{X: 1}, Teleports: 7}
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

// object2D is an object in 2D.
type object2D struct {
	Body struct {
		Place schema.Vec2 `interpolate:"position"`
		Speed schema.Vec2 `interpolate:"velocity"`
	}
	Heading schema.Angle   `interpolate:"orientation"`
	Turret  schema.Rotator `interpolate:"blend"`
	Charge  float32        `interpolate:"blend"`
	Wheels  [2]float64     `interpolate:"blend"`
	Aim     schema.Vec3    `interpolate:"blend"`
	Name    string
	Seen    [2]schema.Angle // steps
}

// TestTaggedValues interpolates angles the short way round, vectors in 2D, numbers and the fields
// of inner structs, without allocating, and extrapolates them.
func TestTaggedValues(t *testing.T) {
	adapter, err := interpolate.Tagged[object2D]()
	must(t, err)
	from := object2D{Heading: 170, Turret: schema.Rotator{Pitch: -10, Yaw: -179, Roll: 90}, Charge: 1, Wheels: [2]float64{10, 20}, Aim: schema.Vec3{X: 1}, Name: "a"}
	to := object2D{Heading: -150, Turret: schema.Rotator{Pitch: 10, Yaw: 179, Roll: 90}, Charge: 2, Wheels: [2]float64{20, 0}, Aim: schema.Vec3{X: 3}, Name: "b"}
	from.Body.Place, to.Body.Place, to.Seen = schema.Vec2{X: 1, Y: 2}, schema.Vec2{X: 3, Y: -2}, [2]schema.Angle{1, 2}
	b, err := interpolate.New(adapter, interpolate.Config{Interval: 100 * ms, Extrapolate: 100 * ms})
	must(t, err)
	must(t, b.Add(0, 0, []uint32{1}, []object2D{from}))
	must(t, b.Add(100*ms, 100*ms, []uint32{1}, []object2D{to}))
	got := new(object2D)
	for at, want := range map[time.Duration]object2D{
		0:        from,
		50 * ms:  {Heading: -170, Turret: schema.Rotator{Yaw: -180, Roll: 90}, Charge: 1.5, Wheels: [2]float64{15, 10}, Aim: schema.Vec3{X: 2}, Name: "a"},
		150 * ms: {Heading: -130, Turret: schema.Rotator{Pitch: 20, Yaw: 178, Roll: 90}, Charge: 2.5, Wheels: [2]float64{25, -10}, Aim: schema.Vec3{X: 4}, Name: "b", Seen: to.Seen},
	} {
		switch at {
		case 0:
			want.Body.Place = from.Body.Place
		case 50 * ms:
			want.Body.Place = schema.Vec2{X: 2}
		default:
			want.Body.Place = schema.Vec2{X: 4, Y: -4}
		}
		if !b.Object(at, 1, got) || !close(adapter.Pose(got), adapter.Pose(&want)) || got.Name != want.Name || got.Seen != want.Seen {
			t.Errorf("%v: %+v, want %+v", at, *got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { b.Object(50*ms, 1, got) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// close reports whether positions, angles and numbers are those of another pose.
func close(a, b interpolate.Pose) bool {
	near := math.Abs(a.Position.X-b.Position.X)+math.Abs(a.Position.Y-b.Position.Y) < 1e-9
	for i := range a.Angles {
		near = near && math.Abs(math.Remainder(a.Angles[i]-b.Angles[i], 360)) < 1e-9
	}
	for i := range a.Numbers {
		near = near && math.Abs(a.Numbers[i]-b.Numbers[i]) < 1e-6
	}
	return near
}

func TestTaggedErrors(t *testing.T) {
	for want, err := range map[string]error{
		"not a struct": errorOf(interpolate.Tagged[int]()),
		`field "A"`: errorOf(interpolate.Tagged[struct {
			A float64 `interpolate:"position"`
		}]()),
		`interpolate:"place" is not possible for a float64: possible are "blend", "position.x"`: errorOf(interpolate.Tagged[struct {
			A float64 `interpolate:"place"`
		}]()),
		"twice": errorOf(interpolate.Tagged[struct {
			A, B schema.Vec3 `interpolate:"velocity"`
		}]()),
		"position.z\" is there twice": errorOf(interpolate.Tagged[struct {
			A schema.Vec3 `interpolate:"position"`
			B float64     `interpolate:"position.z"`
		}]()),
		"nor is another tag": errorOf(interpolate.Tagged[struct {
			A string `interpolate:"blend"`
		}]()),
		`a schema.Vec2: possible are "position", "velocity", "blend"`: errorOf(interpolate.Tagged[struct {
			A schema.Vec2 `interpolate:"orientation"`
		}]()),
		`a schema.Angle: possible are "orientation", "blend"`: errorOf(interpolate.Tagged[struct {
			A schema.Angle `interpolate:"position"`
		}]()),
		"at most 4 angles": errorOf(interpolate.Tagged[struct {
			A schema.Rotator  `interpolate:"orientation"`
			B [2]schema.Angle `interpolate:"blend"`
		}]()),
		"at most 8 blended numbers": errorOf(interpolate.Tagged[struct {
			A [9]float32 `interpolate:"blend"`
		}]()),
		`a uint64, nor`: errorOf(interpolate.Tagged[struct {
			A uint64 `interpolate:"teleports"`
		}]()),
		`a schema.Vec3: possible are`: errorOf(interpolate.Tagged[struct {
			A schema.Vec3 `interpolate:"orientation"`
		}]()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func errorOf[T any](_ interpolate.Adapter[T], err error) error { return err }

// TestObject compares Object with At, for every method, within and outside the snapshots.
func TestObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := interpolate.New(things{}, interpolate.Config{
			Interval: 100 * ms, Method: interpolate.Method(rapid.IntRange(0, 2).Draw(t, "method")),
			Extrapolate: time.Duration(rapid.IntRange(0, 200).Draw(t, "extrapolate")) * ms,
		})
		must(t, err)
		position, last := vectors(100), time.Duration(0)
		for range rapid.IntRange(1, 6).Draw(t, "snapshots") {
			last += time.Duration(rapid.SampledFrom([]int{50, 100, 300, 1500}).Draw(t, "gap")) * ms
			var ids []uint32
			var objects []thing
			for id := range uint32(4) {
				if rapid.IntRange(0, 3).Draw(t, "exists") > 0 {
					ids = append(ids, id)
					objects = append(objects, thing{pose: interpolate.Pose{
						Position: position.Draw(t, "position"), Velocity: position.Draw(t, "velocity"),
						Orientation: turn(schema.Vec3{X: 1}, rapid.Float64Range(0, 3).Draw(t, "angle")), Teleports: rapid.Uint32Range(0, 1).Draw(t, "jumps"),
					}})
				}
			}
			must(t, b.Add(last, last, ids, objects))
		}
		var all interpolate.Sample[thing]
		at := time.Duration(rapid.IntRange(-100, int(last/ms)+400).Draw(t, "at")) * ms
		if !b.At(at, &all) {
			t.Fatal("no snapshot")
		}
		for id := range uint32(5) {
			i, want := slices.BinarySearch(all.IDs, id)
			var one thing
			if ok := b.Object(at, id, &one); ok != want || ok && one != all.Objects[i] {
				t.Fatalf("object %d at %v: %+v, %t, want %t", id, at, one, ok, want)
			}
		}
	})
}
