package path

import (
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// source is a random source that counts up, so that numbers of asks differ.
type source struct{ n byte }

func (s *source) Read(b []byte) (int, error) {
	clear(b)
	s.n++
	b[0] = s.n
	return len(b), nil
}

// TestEchoes: an echo measures once, only if its ask was sent within MaxAge, and at most one ask in
// Interval measures. Of those that are answered at the same time, the lowest measures. A hold time
// cannot make a round trip negative.
func TestEchoes(t *testing.T) {
	var e Estimator
	var random source
	if e.RTT() != 0 || e.MinRTT() != 0 || e.Echoed(0, 0, 0) || e.Echoed(0, 1, 0) {
		t.Error("a measurement before the first ask")
	}
	const at = 10 * time.Second
	var n [6]uint32
	for i, sent := range []time.Duration{0, Interval - 1, Interval, 2 * Interval, 3 * Interval, 4 * Interval} {
		n[i] = e.Ask(at+sent, &random)
	}
	for _, c := range []struct {
		name  string
		at    time.Duration
		echo  uint32
		hold  time.Duration
		valid bool
	}{
		{"a number that was never sent", 4 * Interval, 100, 0, false},
		{"an ask too soon after another one", 4 * Interval, n[1], 0, false},
		{"none", 4 * Interval, 0, 0, false},
		{"the newest", 4*Interval + 100*ms, n[5], 0, true},
		{"the newest again", 4*Interval + 100*ms, n[5], 0, false},
		{"a hold time", 4 * Interval, n[4], Interval - 50*ms, true},
		{"held for longer than its age", 4 * Interval, n[3], 2*Interval + 1, false},
		{"held for its age", 4 * Interval, n[2], 3 * Interval, true},
		{"the maximum age", MaxAge, n[0], 0, true},
	} {
		if got := e.Echoed(at+c.at, c.echo, c.hold); got != c.valid {
			t.Errorf("%s: %v, want %v", c.name, got, c.valid)
		}
	}
	if last, n := e.Last(); last != MaxAge || n != 2 || e.recent != [recent]micros{0, microsOf(MaxAge)} {
		t.Errorf("measured %v, %d times", e.recent, n)
	}
	old := e.Ask(20*time.Second, &random)
	if e.Echoed(20*time.Second+MaxAge+time.Microsecond, old, 0) {
		t.Error("an echo after the maximum age")
	}
	var all []uint32
	for i := range maxAsks {
		all = append(all, e.Ask(time.Minute+time.Duration(i)*Interval, &random))
	}
	for i, number := range all {
		if !e.Echoed(time.Minute+MaxAge, number, 0) {
			t.Errorf("outstanding ask %d was forgotten before its maximum age", i)
		}
	}
}

// TestStall: either end stalls for 0.1 to 5 s, at any phase, while asks are under way, and their
// echoes arrive at once after it. Two seconds later the round-trip time differs by at most 5 ms.
func TestStall(t *testing.T) {
	const rtt = 60 * ms
	for _, stall := range []time.Duration{100 * ms, 300 * ms, time.Second, 2 * time.Second, 5 * time.Second} {
		for phase := time.Duration(0); phase < time.Second; phase += 100 * ms {
			for _, asks := range []bool{false, true} { // during the stall: it is the peer that stalls
				var e Estimator
				var random source
				begins := 20*time.Second + phase
				ends := begins + stall
				type echo struct {
					at     time.Duration
					number uint32
				}
				var echoes []echo
				for at := time.Duration(0); at < ends+2*time.Second; at += 100 * ms {
					for len(echoes) > 0 && echoes[0].at <= at {
						e.Echoed(echoes[0].at, echoes[0].number, 0)
						echoes = echoes[1:]
					}
					stalls := at >= begins && at < ends
					if at%time.Second == 0 && (asks || !stalls) {
						arrives := at + rtt
						if arrives >= begins && arrives < ends {
							arrives = ends + rtt/2
						}
						echoes = append(echoes, echo{arrives, e.Ask(at, &random)})
					}
				}
				if got := e.RTT(); got < rtt-5*ms || got > rtt+5*ms || e.MinRTT() != rtt {
					t.Errorf("stall of %v at %v, asks meanwhile: %v: RTT %v, minimum %v, want %v", stall, begins, asks, got, e.MinRTT(), rtt)
				}
			}
		}
	}
}

// TestAskIsNotZero: a random 0 is not sent, since it means no ask.
func TestAskIsNotZero(t *testing.T) {
	var e Estimator
	if got := e.Ask(0, &source{n: 255}); got != 1 {
		t.Errorf("%d", got)
	}
}

func measure(e *Estimator, at *time.Duration, all ...time.Duration) {
	for _, d := range all {
		*at += 1500 * ms
		e.Measured(*at, d*ms)
	}
}

// TestRTT: the first measurements count as soon as they are there, and three of nine that are far
// off do not move the result.
func TestRTT(t *testing.T) {
	for _, c := range []struct {
		measured []time.Duration
		want     time.Duration
	}{
		{[]time.Duration{100}, 100},
		{[]time.Duration{100, 120}, 110},
		{[]time.Duration{100, 900, 120}, 120},
		{[]time.Duration{100, 900, 120, 110}, 115},
		{[]time.Duration{100, 100, 100, 106, 103, 900, 900, 900, 100}, 103},
		{[]time.Duration{100, 100, 100, 106, 103, 0, 0, 0, 100}, 100},
		{[]time.Duration{1, 1, 1, 1, 1, 1, 1, 1, 1, 200, 200, 200, 200, 200, 200, 200, 200, 200}, 200},
	} {
		var e Estimator
		var at time.Duration
		if measure(&e, &at, c.measured...); e.RTT() != c.want*ms {
			t.Errorf("%v: %v, want %v", c.measured, e.RTT(), c.want*ms)
		}
	}
}

// TestMinRTT: the minimum holds for 30 s and is forgotten after 40 s, also if nothing was measured
// in between.
func TestMinRTT(t *testing.T) {
	var e Estimator
	random := rand.New(rand.NewPCG(1, 2))
	type sample struct{ at, rtt time.Duration }
	var all []sample
	var at time.Duration
	for range 10_000 {
		if at += time.Duration(1+random.IntN(3)) * time.Second; random.IntN(100) == 0 {
			at += time.Duration(random.IntN(60)) * time.Second
		}
		rtt := time.Duration(100+random.IntN(100)) * ms
		if e.Measured(at, rtt); random.IntN(50) == 0 {
			rtt = time.Duration(random.IntN(100)) * ms
			e.Measured(at, rtt)
		}
		all = append(all, sample{at, e.last})
		long, short := time.Hour, time.Hour
		for i := len(all) - 1; i >= 0 && all[i].at > at-40*time.Second; i-- {
			long = min(long, max(all[i].rtt.Truncate(time.Microsecond), time.Microsecond))
			if all[i].at >= at-30*time.Second {
				short = min(short, max(all[i].rtt.Truncate(time.Microsecond), time.Microsecond))
			}
		}
		if got := e.MinRTT(); got < long || got > short {
			t.Fatalf("at %v: %v, want %v to %v", at, got, long, short)
		}
	}
}
