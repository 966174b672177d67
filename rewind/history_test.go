package rewind_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
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
		if !h.Object(rewind.Viewer{}, at, 1, &got) || math.Abs(got.Position.X-want.Position.X) > 1e-9 || got.Health != want.Health {
			t.Errorf("at %v: %+v, want %+v", at, got, want)
		}
		var all interpolate.Sample[target]
		if !h.At(rewind.Viewer{}, at, &all) || len(all.Objects) != 2 || all.Objects[0] != got {
			t.Errorf("at %v: all are %+v", at, all)
		}
	}
	early := newHistory(t, rewind.Config{TickHz: 50})
	play(t, early, 32)
	var got target
	if early.Object(rewind.Viewer{}, 590*ms, 2, &got) || !early.Object(rewind.Viewer{}, 600*ms, 2, &got) || early.Object(rewind.Viewer{}, 600*ms, 3, &got) {
		t.Error("object 2 exists before tick 30, or not from then on, or object 3 exists")
	}
}

// TestTicks compares objects as a client shows them, which interpolates between the ticks that it
// receives, with those of the history, which has all ticks: at several rates, after lost ticks, and
// with objects that teleport or are replaced by others.
func TestTicks(t *testing.T) {
	type body struct {
		Position schema.Vec3 `interpolate:"position"`
		Jumps    uint8       `interpolate:"teleports"`
	}
	motions := map[string]func(t float64) (generation uint32, b body){
		"strafe": func(t float64) (uint32, body) {
			u := math.Mod(t, 46.0/60)
			return 1, body{Position: schema.Vec3{X: 5 * min(u, 46.0/60-u)}}
		},
		"jump": func(t float64) (uint32, body) {
			u := math.Mod(t, 1.02)
			return 1, body{Position: schema.Vec3{Z: 5*u - 4.9*u*u}}
		},
		"blink": func(t float64) (uint32, body) {
			k := math.Floor(t*60/53 + 1e-9)
			return 1, body{Position: schema.Vec3{X: 8 * k}, Jumps: uint8(k)}
		},
		"respawn": func(t float64) (uint32, body) {
			k := math.Floor(t*60/71 + 1e-9)
			return uint32(k), body{Position: schema.Vec3{X: 20 * k, Y: 3 * t}}
		},
	}
	adapter, err := interpolate.Tagged[body]()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, motion := range motions {
		for _, every := range []int{1, 2, 3, 6} {
			for _, loss := range []float64{0, 0.1} {
				shown, err := interpolate.New(adapter, interpolate.Config{Interval: time.Duration(every) * time.Second / 60, Delay: 400 * ms, Snapshots: 500})
				if err != nil {
					t.Fatal(err)
				}
				h, err := rewind.New(adapter, rewind.Config{TickHz: 60, Window: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				v := rewind.Viewer{Delay: 400 * ms}
				for i := range 300 {
					at := time.Duration(i) * time.Second / 60
					id, b := motion(at.Seconds())
					err := h.Add(at, []uint32{id}, []body{b})
					if i%every == 0 && rng.Float64() >= loss {
						err = errors.Join(err, shown.Add(at, at, []uint32{id}, []body{b}))
						v.Ticks = append(v.Ticks, at+time.Duration(rng.IntN(3)-1)) // in other units, rounded
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				for at := time.Second; at < 4*time.Second; at += 3 * ms {
					var want, got interpolate.Sample[body]
					shown.At(at, &want)
					h.At(v, at, &got)
					var one body
					if len(got.IDs) != 1 || got.IDs[0] != want.IDs[0] || !h.Object(v, at, want.IDs[0], &one) || one != got.Objects[0] {
						t.Fatalf("%s, sent every %d ticks, loss %v: at %v object %v is %+v, want %v", name, every, loss, at, got.IDs, one, want.IDs)
					}
					a, b := got.Objects[0].Position, want.Objects[0].Position
					if d := math.Hypot(math.Hypot(a.X-b.X, a.Y-b.Y), a.Z-b.Z); d > 1e-6 {
						t.Fatalf("%s, sent every %d ticks, loss %v: at %v shown and rewound differ by %v m", name, every, loss, at, d)
					}
				}
			}
		}
	}
}

// TestFewAcks checks that a client that acks few ticks is not taken to interpolate over a longer
// time than its delay.
func TestFewAcks(t *testing.T) {
	h := newHistory(t, rewind.Config{TickHz: 50})
	for tick := range 100 {
		x := float64(tick % 50)
		if err := h.Add(time.Duration(tick)*20*ms, []uint32{1}, []target{{Position: schema.Vec3{X: x}}}); err != nil {
			t.Fatal(err)
		}
	}
	for delay, want := range map[time.Duration]float64{100 * ms: 5, 300 * ms: 49 - 36*120./280} {
		v := rewind.Viewer{Delay: delay, Ticks: []time.Duration{980 * ms, 1260 * ms}}
		var got target
		if !h.Object(v, 1100*ms, 1, &got) || math.Abs(got.Position.X-want) > 1e-9 {
			t.Errorf("with a delay of %v: %+v, want %v", delay, got, want)
		}
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
	if !h.Object(rewind.Viewer{}, time.Second, 1, &got) || got.Position.X != 1 {
		t.Errorf("after errors: %+v", got)
	}
}

func TestAllocations(t *testing.T) {
	h := newHistory(t, rewind.Config{TickHz: 50})
	play(t, h, 100)
	var out target
	if n := allocs.PerRun(100, func() {
		at, _ := h.Seen(1500*ms, 1980*ms, rewind.Viewer{RTT: 100 * ms, Delay: 400 * ms})
		h.Object(rewind.Viewer{}, at, 1, &out)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
