package rewind_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/schema"
)

const ms = time.Millisecond

type target struct {
	Position schema.Vec3
	Health   int
}

type adapter struct{}

func (adapter) Pose(o *target) interpolate.Pose       { return interpolate.Pose{Position: o.Position} }
func (adapter) SetPose(o *target, p interpolate.Pose) { o.Position = p.Position }

func newHistory(t testing.TB, cfg rewind.Config) *rewind.History[target] {
	t.Helper()
	h, err := rewind.New(adapter{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// walk returns the objects of a tick: object 1 walks 1 unit each tick, object 2 exists from tick
// 30 on.
func walk(tick int) (ids []uint32, objects []target) {
	ids, objects = []uint32{1}, []target{{Position: schema.Vec3{X: float64(tick)}, Health: 100 - tick}}
	if tick >= 30 {
		ids, objects = append(ids, 2), append(objects, target{Health: 7})
	}
	return ids, objects
}

func play(t testing.TB, h *rewind.History[target], ticks int) {
	t.Helper()
	for tick := range ticks {
		ids, objects := walk(tick)
		if err := h.Add(time.Duration(tick)*20*ms, ids, objects); err != nil {
			t.Fatal(err)
		}
	}
}

func TestObject(t *testing.T) {
	h := newHistory(t, rewind.Config{TickHz: 50})
	play(t, h, 200) // the newest is at 3980 ms, the oldest that is kept at 2980
	for at, want := range map[time.Duration]target{
		3980 * ms: {schema.Vec3{X: 199}, -99},
		3975 * ms: {schema.Vec3{X: 198.75}, -98},
		2980 * ms: {schema.Vec3{X: 149}, -49},
		0:         {schema.Vec3{X: 149}, -49},
		5000 * ms: {schema.Vec3{X: 199}, -99},
	} {
		var got target
		if !h.Object(at, 1, &got) || math.Abs(got.Position.X-want.Position.X) > 1e-9 || got.Health != want.Health {
			t.Errorf("at %v: %+v, want %+v", at, got, want)
		}
		var all interpolate.Sample[target]
		if !h.At(at, &all) || len(all.Objects) != 2 || all.Objects[0] != got {
			t.Errorf("at %v: all are %+v", at, all)
		}
	}
	early := newHistory(t, rewind.Config{TickHz: 50})
	play(t, early, 32)
	var got target
	if early.Object(590*ms, 2, &got) || !early.Object(600*ms, 2, &got) || early.Object(600*ms, 3, &got) {
		t.Error("object 2 exists before tick 30, or not from then on, or object 3 exists")
	}
}

// TestSeen checks that no claim gains more than the tolerance, that honest ones are used as they
// are, that the later of what acks and the round-trip time let expect counts, and that no tick is
// seen before it is sent.
func TestSeen(t *testing.T) {
	h := newHistory(t, rewind.Config{TickHz: 50})
	play(t, h, 200)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * ms
		}
		v := rewind.Viewer{RTT: draw("rtt", 500), AckAge: draw("acked", 800), SentAge: draw("sent", 100), Waited: draw("waited", 500), Delay: draw("delay", 500)}
		const now = 3980 * ms
		age := v.RTT
		if v.MinRTT = draw("min", 500); v.MinRTT != 0 { // snapshots travel as fast as the fastest ones
			age = (v.RTT + v.MinRTT) / 2
		}
		if v.AckAge > 0 && v.AckAge < age {
			age = v.AckAge
		}
		expected := now - age - v.Waited - v.Delay
		claim := expected + time.Duration(rapid.Int64Range(-200, 200).Draw(t, "off"))*ms
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			claim = time.Duration(rapid.Int64().Draw(t, "claim"))
		}
		at, off := h.Seen(claim, now, v)
		latest := max(min(expected+50*ms, now-v.SentAge), expected-50*ms)
		within := min(max(claim, expected-50*ms), latest)
		if want := min(max(within, 2980*ms), now); at != want {
			t.Fatalf("claim %v, expected %v: looked up at %v, want %v", claim, expected, at, want)
		}
		if honest := within == claim; honest && off != claim-expected || honest && off.Abs() > 50*ms {
			t.Fatalf("claim %v, expected %v: off by %v", claim, expected, off)
		}
	})
}

func TestStats(t *testing.T) {
	h := newHistory(t, rewind.Config{TickHz: 50})
	play(t, h, 200)
	v := rewind.Viewer{RTT: 100 * ms, Delay: 100 * ms} // expected: 3780 ms
	for _, claim := range []time.Duration{3780 * ms, 3740 * ms, 3900 * ms, math.MinInt64} {
		h.Seen(claim, 3980*ms, v)
	}
	h.Seen(2900*ms, 3100*ms, v)
	if st, want := h.Stats(), (rewind.Stats{Claims: 5, Clamped: 2, Expired: 1, Largest: time.Hour}); st != want {
		t.Errorf("%+v, want %+v", st, want)
	}
}

func TestErrors(t *testing.T) {
	for _, cfg := range []rewind.Config{
		{},
		{TickHz: math.NaN()},
		{TickHz: 60, Window: -1},
		{TickHz: 60, Window: time.Minute},
		{TickHz: 60, Tolerance: -1},
		{TickHz: 60, Objects: -1},
		{TickHz: 60, Method: 9},
		{TickHz: 1, Window: ms},
	} {
		if _, err := rewind.New(adapter{}, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	h := newHistory(t, rewind.Config{TickHz: 50, Objects: 1})
	play(t, h, 2)
	for _, err := range []error{
		h.Add(20*ms, nil, nil),
		h.Add(40*ms, []uint32{1, 2}, make([]target, 2)),
		h.Add(40*ms, []uint32{1}, nil),
	} {
		if err == nil {
			t.Error("no error")
		}
	}
	var got target
	if !h.Object(time.Second, 1, &got) || got.Position.X != 1 {
		t.Errorf("after errors: %+v", got)
	}
}

func TestAllocations(t *testing.T) {
	h := newHistory(t, rewind.Config{TickHz: 50})
	play(t, h, 100)
	var out target
	if n := allocs.PerRun(100, func() {
		at, _ := h.Seen(1500*ms, 1980*ms, rewind.Viewer{RTT: 100 * ms, Delay: 400 * ms})
		h.Object(at, 1, &out)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
