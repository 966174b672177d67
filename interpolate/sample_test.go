package interpolate_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// TestFlagsStep checks that fields outside the pose change at their snapshot.
func TestFlagsStep(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	first, second := still(0), still(1)
	first.flags, second.flags = 1, 2
	add(t, b, 0, first)
	add(t, b, 100*ms, second)
	for at, want := range map[time.Duration]uint16{0: 1, 99 * ms: 1, 100 * ms: 2, 300 * ms: 2} {
		if got := only(t, b, at).flags; got != want {
			t.Errorf("at %v: %d, want %d", at, got, want)
		}
	}
}

// TestTeleports checks that an object stays until the snapshot after its jump, even if another one
// was lost.
func TestTeleports(t *testing.T) {
	for _, m := range []interpolate.Method{interpolate.Linear, interpolate.Hermite} {
		b := newBuffer(t, interpolate.Config{Method: m, Extrapolate: 200 * ms})
		before, after := moving(0, 5), moving(100, 5)
		after.pose.Teleports = 1
		add(t, b, 0, before)
		add(t, b, 300*ms, after) // two were lost between
		for at, want := range map[time.Duration]float64{0: 0, ms: 0, 299 * ms: 0, 300 * ms: 100, 450 * ms: 100} {
			if got := only(t, b, at).pose.Position.X; got != want {
				t.Errorf("method %d at %v: %v, want %v", m, at, got, want)
			}
		}
	}
}

// TestObjectsComeAndGo checks that the objects are those of the last snapshot.
func TestObjectsComeAndGo(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	must(t, b.Add(0, 0, []uint32{1, 3, 5, 9}, []thing{still(1), still(3), still(5), still(9)}))
	must(t, b.Add(100*ms, 100*ms, []uint32{2, 3, 8, 9}, []thing{still(102), still(103), still(108), still(109)}))
	var s interpolate.Sample[thing]
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

// TestEnds shows times before the oldest and after the newest snapshot.
func TestEnds(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Method: interpolate.Hermite})
	var s interpolate.Sample[thing]
	if b.At(0, &s) || b.Sample(0, &s) {
		t.Error("an empty buffer shows something")
	}
	add(t, b, 0, moving(1, 50))
	add(t, b, 100*ms, moving(6, 50))
	for at, want := range map[time.Duration]float64{-time.Hour: 1, -ms: 1, 101 * ms: 6, time.Hour: 6} {
		if got := only(t, b, at).pose.Position.X; got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	for at, want := range map[time.Duration]bool{0: false, 100 * ms: false, 101 * ms: true} {
		if b.At(at, &s); s.Starved != want {
			t.Errorf("at %v: starved is %v", at, s.Starved)
		}
	}
}

// TestExtrapolation checks that motion continues for Config.Extrapolate and then stops.
func TestExtrapolation(t *testing.T) {
	axis := schema.Vec3{Z: 1}
	for m, speed := range map[interpolate.Method]float64{interpolate.Linear: 20, interpolate.Hermite: 50} {
		b := newBuffer(t, interpolate.Config{Method: m, Extrapolate: 200 * ms})
		first, second := moving(0, 50), moving(2, 50)
		second.pose.Orientation = turn(axis, 0.1)
		add(t, b, 0, first)
		add(t, b, 100*ms, second)
		for on, want := range map[time.Duration]time.Duration{50 * ms: 50 * ms, 200 * ms: 200 * ms, 201 * ms: 200 * ms, time.Hour: 200 * ms} {
			got := only(t, b, 100*ms+on).pose
			if x := 2 + speed*want.Seconds(); math.Abs(got.Position.X-x) > 1e-9 {
				t.Errorf("method %d, %v on: at %v, want %v", m, on, got.Position.X, x)
			}
			if q := turn(axis, 0.1+want.Seconds()); !same(got.Orientation, q, 1e-9) {
				t.Errorf("method %d, %v on: turned %v, want %v", m, on, got.Orientation, q)
			}
		}
	}
}

// TestGaps checks that nothing is interpolated across a pause.
func TestGaps(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Gap: time.Second, Extrapolate: 100 * ms})
	add(t, b, 0, still(0))
	add(t, b, time.Second+ms, still(10))
	if got := only(t, b, 900*ms).pose.Position.X; got != 0 {
		t.Errorf("in the gap at %v", got)
	}
	if got := only(t, b, time.Second+50*ms).pose.Position.X; got != 10 {
		t.Errorf("extrapolated across the gap to %v", got)
	}
	add(t, b, 2*time.Second, still(20))
	if got := only(t, b, 1500*ms).pose.Position.X; got <= 10 || got >= 20 {
		t.Errorf("at %v where there is no gap", got)
	}
	b = newBuffer(t, interpolate.Config{Gap: time.Second, Method: interpolate.Nearest})
	add(t, b, 0, still(0))
	add(t, b, time.Second+ms, still(10))
	if got := only(t, b, 900*ms).pose.Position.X; got != 0 {
		t.Errorf("nearest in the gap at %v", got)
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
