package jitter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/jitter"
)

const (
	ms       = time.Millisecond
	interval = 16 * ms
)

type buffer = jitter.Buffer[uint64]

func newBuffer(t testing.TB, c jitter.Config) *buffer {
	t.Helper()
	if c.Interval == 0 {
		c.Interval = interval
	}
	b, err := jitter.New[uint64](c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// add adds the value 10*tick, which says whose it is.
func add(b *buffer, at time.Duration, tick uint64) jitter.Fate {
	v := 10 * tick
	return b.Add(at, tick, &v)
}

// step is one tick, which must give want, or nothing if that is below 0.
func step(t testing.TB, b *buffer, at time.Duration, want int64) {
	t.Helper()
	v := uint64(0)
	tick, state := b.Step(at, &v)
	switch {
	case want < 0 && state == jitter.Released:
		t.Fatalf("at %v: %d is released, want nothing", at, tick)
	case want >= 0 && (state != jitter.Released || tick != uint64(want) || v != 10*tick):
		t.Fatalf("at %v: tick %d is %v with %d, want %d released", at, tick, state, v, want)
	}
}

// TestSteps: values come in any order, and leave in that of their times, one a tick.
func TestSteps(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: 2 * interval})
	step(t, b, 0, -1)
	add(b, 8*ms, 5) // due 40 ms later: at the third tick from now
	step(t, b, 1*interval, -1)
	add(b, 26*ms, 7)
	add(b, 27*ms, 6)
	step(t, b, 2*interval, -1)
	for i := range int64(3) {
		step(t, b, time.Duration(3+i)*interval, 5+i)
	}
	if st := b.Stats(); st.Released != 3 || st.Missing != 0 || st.Held != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFates: what is late, was there before or is far ahead is refused and counted, and missing ticks are told.
func TestFates(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: interval})
	for i, want := range []jitter.Fate{jitter.Held, jitter.Duplicate} {
		if got := add(b, 8*ms, 100); got != want {
			t.Errorf("copy %d is %v, want %v", i, got, want)
		}
	}
	add(b, 9*ms, 102)
	at := time.Duration(0)
	var missing []uint64
	for b.Stats().Released < 2 {
		at += interval
		if tick, state := b.Step(at, new(uint64)); state == jitter.Missing {
			missing = append(missing, tick)
		}
	}
	if len(missing) != 1 || missing[0] != 101 {
		t.Errorf("missing %d, want 101", missing)
	}
	for _, c := range []struct {
		tick uint64
		want jitter.Fate
	}{{101, jitter.Late}, {100, jitter.Duplicate}, {102, jitter.Duplicate}, {99, jitter.Late}, {102 + 5000, jitter.Early}, {103, jitter.Held}} {
		if got := add(b, at, c.tick); got != c.want {
			t.Errorf("%d is %v, want %v", c.tick, got, c.want)
		}
	}
	b.Step(at+interval, new(uint64))
	b.Step(at+2*interval, new(uint64))
	st := b.Stats()
	want := jitter.Stats{Released: 3, Missing: 2, Dry: 1, Late: 2, Duplicate: 3, Early: 1, Slack: st.Slack, Target: interval}
	if st != want {
		t.Errorf("counted %+v, want %+v", st, want)
	}
}

// TestPause: after a while without values ticks are not missing, and the next one begins anew, as early as the first.
func TestPause(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: 2 * interval, Gap: 10 * interval})
	at, next := time.Duration(0), uint64(0)
	play := func(ticks int, sends bool) {
		for range ticks {
			if sends {
				add(b, at+4*ms, next)
				next++
			}
			at += interval
			b.Step(at, new(uint64))
		}
	}
	play(50, true)
	before := b.Stats()
	play(1000, false)
	paused := b.Stats()
	if n := paused.Missing - before.Missing; n < 5 || n > 10 {
		t.Errorf("%d ticks are missing in a pause", n)
	}
	play(50, true)
	after := b.Stats()
	if n := after.Released - paused.Released; n < 45 || after.Missing != paused.Missing || after.Late != 0 || after.Resyncs != 1 {
		t.Errorf("after a pause: %+v, before: %+v", after, paused)
	}
}

// TestJumps: a frame time that jumps is followed at the third value, forward and back; a single stray one is dropped.
func TestJumps(t *testing.T) {
	for name, to := range map[string]uint64{"ahead": 1 << 40, "little ahead": 1200, "back": 3, "wraps": 1<<64 - 5} {
		t.Run(name, func(t *testing.T) {
			b := newBuffer(t, jitter.Config{Depth: 2 * interval})
			at, next := time.Duration(0), uint64(1000)
			var released uint64
			play := func(ticks int) {
				for range ticks {
					add(b, at+4*ms, next)
					next++
					at += interval
					if tick, state := b.Step(at, new(uint64)); state == jitter.Released {
						released = tick
					}
				}
			}
			play(100)
			add(b, at, 1<<50) // a stray one
			play(20)
			if st := b.Stats(); st.Early != 1 || st.Resyncs != 0 || st.Missing != 0 {
				t.Errorf("after a stray value: %+v", st)
			}
			next = to
			play(20)
			if lag := int64(next - released); lag < 1 || lag > 5 || b.Stats().Resyncs != 1 {
				t.Errorf("tick %d was released last, the sender is at %d: %+v", released, next, b.Stats())
			}
		})
	}
}

// TestSlower: when the way becomes longer for good, values are late for a tenth of a second, not for longer.
func TestSlower(t *testing.T) {
	b := newBuffer(t, jitter.Config{})
	at := time.Duration(0)
	for n := range uint64(400) {
		delay := 4 * ms
		if n >= 200 {
			delay += 200 * ms
		}
		for ; at+interval < time.Duration(n)*interval+delay; at += interval {
			b.Step(at+interval, new(uint64))
		}
		add(b, time.Duration(n)*interval+delay, n)
	}
	st := b.Stats()
	if st.Missing > 12+8 || st.Late > 10 || st.Resyncs != 1 {
		t.Errorf("%+v", st)
	}
}

// TestFaster: when values come far too early for long, because the sender does not follow, the oldest are skipped.
func TestFaster(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: 2 * interval})
	var next uint64
	most := 0
	for at := time.Duration(0); at < time.Minute; at += interval {
		b.Step(at, new(uint64))
		for ; time.Duration(next)*interval*99/100 <= at+5*ms; next++ {
			add(b, at+5*ms, next)
		}
		most = max(most, b.Stats().Held)
	}
	// In a minute a hundredth is 37 ticks; each time that they are 4 too many, they are skipped.
	if st := b.Stats(); st.Skipped < 20 || st.Skipped > 40 || st.Missing != 0 || st.Early != 0 || most > 12 {
		t.Errorf("%d are held at most: %+v", most, st)
	}
}

// TestMemoryComesBack: what a value refers to can be used for later ones, and is nobody else's.
func TestMemoryComesBack(t *testing.T) {
	b, err := jitter.New[[]byte](jitter.Config{Interval: interval, Depth: interval})
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]byte, 0, 8), make([]byte, 0, 8)
	round := func(n uint64) {
		in = append(in[:0], byte(n), byte(n>>8))
		b.Add(time.Duration(n)*interval+4*ms, n, &in)
		if tick, state := b.Step(time.Duration(n+1)*interval, &out); state == jitter.Released {
			if len(out) != 2 || out[0] != byte(tick) || out[1] != byte(tick>>8) {
				t.Fatalf("tick %d has %v", tick, out)
			}
		}
	}
	n := uint64(0)
	for ; n < 100; n++ {
		round(n)
	}
	if allocs := testing.AllocsPerRun(1000, func() { round(n); n++ }); allocs != 0 {
		t.Errorf("%v allocations a value", allocs)
	}
}

// TestConfig: an error names the field.
func TestConfig(t *testing.T) {
	for field, c := range map[string]jitter.Config{
		"Interval": {},
		"Depth":    {Interval: interval, Depth: -1},
		"MinDepth": {Interval: interval, MinDepth: time.Second, MaxDepth: time.Second / 2},
		"MaxDepth": {Interval: interval, MaxDepth: time.Hour},
		"Gap":      {Interval: interval, Gap: -1},
		"Capacity": {Interval: interval, Capacity: 8},
	} {
		if _, err := jitter.New[int](c); err == nil || !strings.Contains(err.Error(), "Config."+field+" ") {
			t.Errorf("%+v: %v, want an error that names %s", c, err, field)
		}
	}
}

func BenchmarkAddStep(b *testing.B) {
	b.ReportAllocs()
	x := newBuffer(b, jitter.Config{})
	n := uint64(0)
	for b.Loop() {
		v := n
		x.Add(time.Duration(n)*interval+4*ms, n, &v)
		x.Step(time.Duration(n+1)*interval, &v)
		n++
	}
}
