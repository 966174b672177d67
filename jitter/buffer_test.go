package jitter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
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
	uplinktest.Must(t, err)
	return b
}

// add adds the value 10*tick.
func add(b *buffer, at time.Duration, tick uint64) jitter.AddResult {
	v := 10 * tick
	return b.Add(at, tick, &v)
}

// step advances one tick, which must release want, or nothing if want is negative.
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

// sender sends one value per interval, with a delay.
type sender struct {
	b          *buffer
	tick, next uint64
}

// play plays ticks. late returns the delay of a value.
func (s *sender) play(ticks uint64, late func(value uint64) time.Duration) {
	for end := s.tick + ticks; s.tick < end; s.tick++ {
		at := time.Duration(s.tick) * interval
		s.b.Step(at, new(uint64))
		for {
			came := time.Duration(s.next)*interval + late(s.next)
			if came >= at+interval {
				break
			}
			add(s.b, came, s.next)
			s.next++
		}
	}
}

// after returns a constant delay.
func after(d time.Duration) func(uint64) time.Duration {
	return func(uint64) time.Duration { return d }
}

// evenly sends n values, each 4 ms after a tick, or only advances, and returns the last tick that
// was released.
func (s *sender) evenly(n int, sends bool) (last uint64) {
	for range n {
		if sends {
			add(s.b, time.Duration(s.tick)*interval+4*ms, s.next)
			s.next++
		}
		s.tick++
		if tick, state := s.b.Step(time.Duration(s.tick)*interval, new(uint64)); state == jitter.Released {
			last = tick
		}
	}
	return last
}

// TestSteps adds values in any order; they are released in order, one per tick.
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

// TestAddResults checks results and counts for late, duplicate and early values, and for missing
// ticks.
func TestAddResults(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: interval})
	for i, want := range []jitter.AddResult{jitter.Held, jitter.Duplicate} {
		if got := add(b, 8*ms, 100); got != want {
			t.Errorf("copy %d is %v, want %v", i, got, want)
		}
	}
	add(b, 20*ms, 102)
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
		want jitter.AddResult
	}{{101, jitter.Late}, {100, jitter.Duplicate}, {102, jitter.Duplicate}, {99, jitter.Late}, {102 + 5000, jitter.Early}, {103, jitter.Held}} {
		if got := add(b, at, c.tick); got != c.want {
			t.Errorf("%d is %v, want %v", c.tick, got, c.want)
		}
	}
	b.Step(at+interval, new(uint64))
	b.Step(at+2*interval, new(uint64))
	st := b.Stats()
	want := jitter.Stats{Released: 3, Missing: 2, Dry: 1, Late: 2, Duplicate: 3, Early: 1, Slack: st.Slack, Target: interval, Rate: 1}
	if st != want {
		t.Errorf("counted %+v, want %+v", st, want)
	}
}

// TestPause checks that ticks are not missing during a pause, and that playback resyncs after it.
func TestPause(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: 2 * interval, Gap: 10 * interval})
	s := sender{b: b}
	s.evenly(50, true)
	before := b.Stats()
	s.evenly(1000, false)
	paused := b.Stats()
	if n := paused.Missing - before.Missing; n < 5 || n > 10 {
		t.Errorf("%d ticks are missing in a pause", n)
	}
	s.evenly(50, true)
	after := b.Stats()
	if n := after.Released - paused.Released; n < 45 || after.Missing != paused.Missing || after.Late != 0 || after.Resyncs != 1 {
		t.Errorf("after a pause: %+v, before: %+v", after, paused)
	}
}

// TestJumps checks that a jump of the ticks, forward or back, is followed at the third value, and
// that a single stray value is dropped.
func TestJumps(t *testing.T) {
	for name, to := range map[string]uint64{"ahead": 1 << 40, "little ahead": 1200, "back": 3, "wraps": 1<<64 - 5} {
		b := newBuffer(t, jitter.Config{Depth: 2 * interval})
		s := sender{b: b, next: 1000}
		s.evenly(100, true)
		add(b, time.Duration(s.tick)*interval, 1<<50) // a stray one
		s.evenly(20, true)
		if st := b.Stats(); st.Early != 1 || st.Resyncs != 0 || st.Missing != 0 {
			t.Errorf("%s: after a stray value: %+v", name, st)
		}
		s.next = to
		released := s.evenly(20, true)
		if lag := int64(s.next - released); lag < 1 || lag > 5 || b.Stats().Resyncs != 1 {
			t.Errorf("%s: tick %d was released last, the sender is at %d: %+v", name, released, s.next, b.Stats())
		}
	}
}

// TestSlower increases the delay of the link: values are late for a tenth of a second only.
func TestSlower(t *testing.T) {
	s := sender{b: newBuffer(t, jitter.Config{})}
	s.play(200, after(4*ms))
	s.play(200, after(204*ms))
	if st := s.b.Stats(); st.Missing > 12+8 || st.Late > 10 || st.Resyncs != 1 {
		t.Errorf("%+v", st)
	}
}

// TestFaster sends too fast without following: the oldest values are skipped.
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

// TestMemoryComesBack checks that the memory of values is reused and not shared.
func TestMemoryComesBack(t *testing.T) {
	b, err := jitter.New[[]byte](jitter.Config{Interval: interval, Depth: interval})
	uplinktest.Must(t, err)
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
	if allocs := allocs.PerRun(1000, func() { round(n); n++ }); allocs != 0 {
		t.Errorf("%v allocations a value", allocs)
	}
}

// TestConfig checks that an error names the field.
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

// TestStrays checks that the third consecutive stray value resyncs the buffer, and none before.
func TestStrays(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: interval})
	s := sender{b: b}
	stray := uint64(1 << 40)
	for _, wants := range [][]jitter.AddResult{
		{jitter.Early, jitter.Early}, {jitter.Early, jitter.Early}, {jitter.Early, jitter.Early, jitter.Held},
	} {
		s.evenly(1, true)
		for i, want := range wants {
			if got := add(b, time.Duration(s.tick)*interval, stray); got != want {
				t.Errorf("stray value %d in a row is %v, want %v", i+1, got, want)
			}
			stray++
		}
	}
	if st := b.Stats(); st.Resyncs != 1 || st.Early != 6 {
		t.Errorf("%+v", st)
	}
}

// TestLearned checks that the target grows at once and decays by 1/e in 30 s. A first stall of the
// sender does not count.
func TestLearned(t *testing.T) {
	b := newBuffer(t, jitter.Config{})
	s := sender{b: b}
	s.play(1000, after(ms))
	calm := b.Stats().Target
	for i, c := range []struct{ late, least, most time.Duration }{
		{late: 150 * ms, most: calm}, {late: 150 * ms, least: 130 * ms, most: 170 * ms}, {late: 30 * ms, least: 120 * ms, most: 170 * ms},
	} {
		first := s.next
		s.play(100, func(value uint64) time.Duration {
			if value == first+50 {
				return c.late
			}
			return ms
		})
		if got := b.Stats().Target; calm > 2*interval || got < c.least || got > c.most {
			t.Errorf("the target is %v, and %v after late value %d, want %v to %v", calm, got, i, c.least, c.most)
		}
	}
	b = newBuffer(t, jitter.Config{})
	start := b.Stats().Target - interval/4
	s = sender{b: b}
	s.play(uint64(30*time.Second/interval), after(ms))
	if left := float64(b.Stats().Target-interval/4) / float64(start); left < .35 || left > .4 {
		t.Errorf("after 30 s %.3f of what was assumed is left, want 1/e", left)
	}
}

// TestOlder checks that redundant older values do not influence the slack.
func TestOlder(t *testing.T) {
	var slack [2]time.Duration
	for i, older := range []bool{false, true} {
		b := newBuffer(t, jitter.Config{Depth: 4 * interval})
		for tick := uint64(0); tick < 500; tick++ {
			at := time.Duration(tick) * interval
			b.Step(at, new(uint64))
			if tick%4 == 2 { // it is lost, and comes with the next
				continue
			}
			add(b, at+ms, tick)
			if older && tick%4 == 3 {
				add(b, at+ms, tick-1)
			}
		}
		slack[i] = b.Stats().Slack
		if missing := b.Stats().Missing; (missing < 10) != older {
			t.Errorf("older: %v: %d are missing", older, missing)
		}
	}
	if slack[0] != slack[1] {
		t.Errorf("slack is %v, and %v with older values", slack[0], slack[1])
	}
}

// TestShort checks that release times are delayed by a tick if slack is more than an interval short
// for two seconds.
func TestShort(t *testing.T) {
	b := newBuffer(t, jitter.Config{Depth: 4 * interval})
	s := sender{b: b}
	s.play(200, after(ms))
	was := b.Stats()
	s.play(100, after(ms+2*interval))
	if st := b.Stats(); st.Resyncs != 0 || st.Slack > was.Slack-3*interval/2 {
		t.Errorf("after %v: %+v", 100*interval, st)
	}
	s.play(100, after(ms+2*interval))
	if st := b.Stats(); st.Resyncs != 1 || st.Slack < was.Slack-3*interval/2 || st.Late != 0 {
		t.Errorf("after %v: %+v", 200*interval, st)
	}
}
