package interpolate_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/interpolate"
)

func TestBadInput(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Objects: 3})
	o := make([]thing, 4)
	for want, err := range map[string]error{
		"2 ids for 1 objects":           b.Add(0, 0, []uint32{1, 2}, o[:1]),
		"4 objects, at most 3":          b.Add(0, 0, []uint32{1, 2, 3, 4}, o),
		"id 2 comes after 2":            b.Add(0, 0, []uint32{1, 2, 2}, o[:3]),
		"id 1 comes after 2":            b.Add(0, 0, []uint32{2, 1}, o[:2]),
		"now is -2562047h47m16.854775":  b.Add(math.MinInt64, 0, nil, nil),
		"server is 2562047h47m16.85477": b.Add(0, math.MaxInt64, nil, nil),
	} {
		if !errors.Is(err, interpolate.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if s := b.Stats(); s.Bad != 6 || s.Added != 0 {
		t.Errorf("%+v", s)
	}
	if _, ok := b.Play(0); ok {
		t.Error("a snapshot that was refused is shown")
	}
}

func TestLateAndTwice(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Snapshots: 6})
	for k := range 7 { // the first goes
		add(t, b, time.Duration(k)*100*ms, still(float64(k)))
	}
	if err := b.Add(700*ms, 500*ms, nil, nil); !errors.Is(err, interpolate.ErrDuplicate) {
		t.Error(err)
	}
	if err := b.Add(700*ms, 0, nil, nil); !errors.Is(err, interpolate.ErrLate) {
		t.Error(err)
	}
	if got := only(t, b, 0).pose.Position.X; got != 1 {
		t.Errorf("the oldest is %v", got)
	}
	if s := b.Stats(); s.Late != 1 || s.Duplicate != 1 || s.Added != 7 {
		t.Errorf("%+v", s)
	}
}

// TestServerRestart restarts the server's time: the third old snapshot in succession resets the
// buffer.
func TestServerRestart(t *testing.T) {
	b := newBuffer(t, interpolate.Config{})
	add(t, b, time.Hour, still(1))
	stray := func(now, server time.Duration) error { return b.Add(now, server, []uint32{7}, []thing{still(2)}) }
	for k := range 2 {
		if err := stray(time.Hour, time.Duration(k)*ms); !errors.Is(err, interpolate.ErrLate) {
			t.Fatal(err)
		}
	}
	add(t, b, time.Hour+100*ms, still(1))
	for k := range 2 {
		if err := stray(time.Hour, time.Duration(k)*ms); !errors.Is(err, interpolate.ErrLate) {
			t.Fatal(err)
		}
	}
	if got := only(t, b, time.Hour).pose.Position.X; got != 1 {
		t.Fatal(got)
	}
	must(t, stray(time.Hour, 2*ms))
	if play, ok := b.Play(time.Hour); !ok || play != 2*ms-350*ms {
		t.Error(play, ok)
	}
	if got := only(t, b, time.Hour).pose.Position.X; got != 2 {
		t.Error(got)
	}
}

func TestReset(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Adaptive: true})
	course{interval: 100 * ms, delay: steady(0)}.run(t, b, 0, 5*time.Second)
	b.Reset()
	if _, ok := b.Play(5 * time.Second); ok {
		t.Error("something is left")
	}
	if got := b.Stats().Delay; got != 350*ms {
		t.Errorf("delay %v is left", got)
	}
	add(t, b, 0, still(3))
	if got := only(t, b, 0).pose.Position.X; got != 3 {
		t.Error(got)
	}
}

// TestTheEndOfTime checks that a time out of range shows and changes nothing.
func TestTheEndOfTime(t *testing.T) {
	b := newBuffer(t, interpolate.Config{Delay: 300 * ms})
	add(t, b, 0, still(0))
	want, _ := b.Play(100 * ms)
	for _, now := range []time.Duration{math.MaxInt64, math.MinInt64} {
		if _, ok := b.Play(now); ok {
			t.Errorf("plays at %d", now)
		}
	}
	if got, ok := b.Play(100 * ms); !ok || got != want {
		t.Errorf("then plays %v, before %v", got, want)
	}
}

// hostile adds snapshots of arbitrary times and ids: there is no panic, at most Config.Objects
// objects of finite poses are shown, and each snapshot is counted once. While the client's clock
// advances, playback runs backwards only after a restart.
func hostile(t *rapid.T) {
	b, err := interpolate.New(things{}, interpolate.Config{
		Interval: 20 * ms, Method: interpolate.Method(rapid.IntRange(0, 2).Draw(t, "method")),
		Adaptive: rapid.Bool().Draw(t, "adaptive"), Extrapolate: 500 * ms, Objects: 5,
	})
	must(t, err)
	extremes := []int64{math.MinInt64, -1 << 61, -1, 0, 1, 1 << 61, 1<<61 + 1, math.MaxInt64}
	times := rapid.OneOf(rapid.SampledFrom(extremes), rapid.Int64(), rapid.Int64Range(0, int64(3*time.Second)))
	advances := rapid.Bool().Draw(t, "advances")
	var now, shown time.Duration
	clock := func() time.Duration {
		if !advances {
			return time.Duration(times.Draw(t, "now"))
		}
		now += time.Duration(rapid.IntRange(0, 255).Draw(t, "elapsed")) * ms
		return now
	}
	var s interpolate.Sample[thing]
	added, restarts := uint64(0), uint64(0)
	for step := range uint64(rapid.IntRange(1, 40).Draw(t, "steps")) {
		server := time.Duration(times.Draw(t, "server"))
		ids := rapid.SliceOfN(rapid.Uint32Range(0, 9), 0, 6).Draw(t, "ids")
		objects := make([]thing, len(ids))
		for i := range objects {
			objects[i] = moving(float64(i), 3)
		}
		if b.Add(clock(), server, ids, objects) == nil {
			added++
		}
		if st := b.Stats(); st.Added != added || st.Added+st.Late+st.Duplicate+st.Bad != step+1 {
			t.Fatalf("%d of %d were added, counted %+v", added, step+1, st)
		}
		if !b.Sample(clock(), &s) {
			continue
		}
		if added == 0 || len(s.IDs) > 5 || len(s.Objects) != len(s.IDs) {
			t.Fatalf("%d added, shows %+v", added, s)
		}
		if again := b.Stats().Restarts != restarts; advances && s.Time < shown && !again {
			t.Fatalf("shows %v after %v", s.Time, shown)
		}
		shown, restarts = s.Time, b.Stats().Restarts
		for _, o := range s.Objects {
			p := &o.pose
			if x := p.Position.X + p.Velocity.X + p.Orientation.W; math.IsNaN(x) || math.Abs(x) > 1e10 {
				t.Fatalf("shows %+v", o)
			}
		}
	}
}

func TestHostile(t *testing.T) { rapid.Check(t, hostile) }

func FuzzHostile(f *testing.F) { f.Fuzz(rapid.MakeFuzz(hostile)) }

// TestAllocations checks that nothing is allocated once every slot was used.
func TestAllocations(t *testing.T) {
	for _, m := range []interpolate.Method{interpolate.Linear, interpolate.Hermite, interpolate.Nearest} {
		b := newBuffer(t, interpolate.Config{Interval: 16 * ms, Method: m, Adaptive: true, Extrapolate: 50 * ms})
		ids, objects := make([]uint32, 100), make([]thing, 100)
		for i := range ids {
			ids[i] = uint32(i)
		}
		var s interpolate.Sample[thing]
		now := time.Duration(0)
		step := func() {
			now += 16 * ms
			for i := range objects {
				objects[i] = moving(now.Seconds(), 1)
			}
			must(t, b.Add(now, now-30*ms, ids, objects))
			if !b.Sample(now, &s) || len(s.Objects) != 100 {
				t.Fatal(len(s.Objects))
			}
		}
		for range 200 {
			step()
		}
		if n := testing.AllocsPerRun(500, step); n != 0 {
			t.Errorf("method %d: %v allocations", m, n)
		}
	}
}
