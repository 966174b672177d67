package interpolate_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
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
	if err := b.Add(700*ms, 500*ms, nil, nil); !errors.Is(err, interpolate.ErrLate) {
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
	stray := func(now, server time.Duration) error { return b.Add(now, server, []uint32{7}, []thing{still(2)}) }
	for _, at := range []time.Duration{time.Hour, time.Hour + 100*ms} {
		add(t, b, at, still(1))
		for k := range time.Duration(2) {
			if err := stray(time.Hour, k*ms); !errors.Is(err, interpolate.ErrLate) {
				t.Fatal(err)
			}
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
	playback{interval: 100 * ms, delay: steady(0)}.run(t, b, 0, 5*time.Second)
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
		if n := allocs.PerRun(500, step); n != 0 {
			t.Errorf("method %d: %v allocations", m, n)
		}
	}
}

// BenchmarkSample shows a world of 901 objects of which a hundred move, 60 times per second, and
// adds a snapshot each time.
func BenchmarkSample(b *testing.B) {
	buf := newBuffer(b, interpolate.Config{Interval: time.Second / 60, Method: interpolate.Hermite, Adaptive: true})
	ids, objects := make([]uint32, 901), make([]thing, 901)
	for i := range ids {
		ids[i], objects[i] = uint32(i), still(float64(i))
	}
	var s interpolate.Sample[thing]
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Second / 60
		for i := range 100 {
			objects[i] = moving(now.Seconds(), 1)
			objects[i].pose.Orientation.X = now.Seconds()
		}
		must(b, buf.Add(now, now, ids, objects))
		buf.Sample(now, &s)
	}
}

// TestRule checks the default delay for several losses.
func TestRule(t *testing.T) {
	for loss, intervals := range map[float64]int{0: 1, -1: 1, 1e-4: 1, 0.01: 2, 0.02: 3, 0.05: 3, 0.1: 4, 0.2: 6, 0.5: 13, 0.9: 16, 1: 13, math.NaN(): 13} {
		if got, want := interpolate.Delay(100*ms, 50*ms, loss), time.Duration(intervals)*100*ms+50*ms; got != want {
			t.Errorf("loss %v: %v, want %v", loss, got, want)
		}
	}
	if got := interpolate.Delay(math.MaxInt64, math.MaxInt64, 0.9); got != 16*10*time.Second+time.Hour {
		t.Errorf("of the longest times: %v", got)
	}
	if got := interpolate.Delay(math.MinInt64, math.MinInt64, 0); got != 0 {
		t.Errorf("of negative times: %v", got)
	}
}

func TestConfig(t *testing.T) {
	for field, c := range map[string]interpolate.Config{
		"Interval is 0s":    {},
		"Interval is 11s":   {Interval: 11 * time.Second},
		"Method is 3":       {Method: 3},
		"Method is -1":      {Method: -1},
		"Delay is -1ms":     {Delay: -ms},
		"Jitter is 2h":      {Jitter: 2 * time.Hour},
		"MaxDelay is -1ms":  {MaxDelay: -ms},
		"Extrapolate is 1s": {Extrapolate: time.Second},
		"Gap is -1ms":       {Gap: -ms},
		"Loss is 1,":        {Loss: 1},
		"Loss is NaN":       {Loss: math.NaN()},
		"Late is -0.1":      {Late: -0.1},
		"Snapshots is 4, must be from 5 to 1024: the maximum delay is 350ms": {Snapshots: 4},
		"Snapshots is 6, must be from 8 to 1024: the maximum delay is 600ms": {Snapshots: 6, Adaptive: true},
		"Snapshots is 1025,": {Snapshots: 1025},
		"Objects is -1,":     {Objects: -1},
		"Objects is 65537,":  {Objects: 65537},
	} {
		if !strings.HasPrefix(field, "Interval") {
			c.Interval = 100 * ms
		}
		if _, err := interpolate.New(things{}, c); err == nil || !strings.HasPrefix(err.Error(), "interpolate: Config."+field) {
			t.Errorf("%v, want Config.%s", err, field)
		}
	}
}
