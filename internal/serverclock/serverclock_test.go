package serverclock_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/serverclock"
)

var update = flag.Bool("update", false, "write testdata/sessions/clock.session")

const ms = time.Millisecond

// TestSession writes a session of a Clock, or compares it with the file from which other
// implementations read it.
func TestSession(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintln(&out, "# A clock that follows a server. Times are in ns.")
	for _, c := range []struct {
		what          string
		delay, jitter time.Duration
		drift         float64
		seed          uint64
	}{
		{"20 ms of delay, with jitter and loss", 20 * ms, 60 * ms, 0, 1},
		{"the server's clock is fast", 50 * ms, 10 * ms, 2e-3, 2},
		{"the server's clock is slow", 50 * ms, 10 * ms, -2e-3, 3},
		{"the server runs at 0.8 of its rate", 50 * ms, 10 * ms, -0.2, 4},
		{"the server runs at 1.1 of its rate", 50 * ms, 10 * ms, 0.1, 5},
	} {
		fmt.Fprintln(&out, "#", c.what)
		record(&out, c.delay, c.jitter, c.drift, c.seed)
	}
	file := filepath.Join("..", "..", "testdata", "sessions", "clock.session")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%s differs; -update writes it", file)
	}
}

// record plays a session: packets that are late, lost, repeated and out of order, a path that
// becomes slower, and a server that pauses and then starts again at a later time.
func record(out *bytes.Buffer, delay, jitter time.Duration, drift float64, seed uint64) {
	const slower, pause, restart, end = 200, 400, 520, 800
	rng := rand.New(rand.NewPCG(7, seed))
	c := serverclock.New(serverclock.Remote(40 * ms))
	arrivals := map[int][]time.Duration{} // server times by the step of 10 ms in which they arrive
	fmt.Fprintln(out, "clock")
	for step := range end {
		now := time.Minute + time.Duration(step)*10*ms + time.Duration(rng.IntN(int(ms)))
		if step%4 == 0 && (step < pause || step >= restart) {
			server := time.Hour + time.Duration(float64(step)*float64(10*ms)*(1+drift))
			if step >= restart {
				server += 10 * time.Second
			}
			for range []int{0, 1, 1, 1, 1, 1, 1, 2}[rng.IntN(8)] {
				d := delay + time.Duration(rng.Float64()*float64(jitter))
				if step >= slower {
					d += 30 * ms
				}
				at := step + int(d/(10*ms))
				arrivals[at] = append(arrivals[at], server)
			}
		}
		for _, server := range arrivals[step] {
			c.Observe(now, server)
			fmt.Fprintf(out, "observe %d %d\n", now, server)
		}
		if step%7 == 0 {
			oneWay := delay + time.Duration(rng.IntN(int(ms)))
			at, ok := c.Server(now, oneWay)
			if !ok {
				at = -1
			}
			fmt.Fprintf(out, "server %d %d = %d\n", now, oneWay, at)
		}
	}
}

// TestChanges changes the rate of a server at once, and stops it for various times. Two seconds
// after a stall, and three after a change of the rate, the clock is right by an interval and 20 ms.
func TestChanges(t *testing.T) {
	for _, hz := range []int{60, 30, 10} {
		for _, jitter := range []time.Duration{0, 8 * ms} {
			rng := rand.New(rand.NewPCG(uint64(hz), uint64(jitter)))
			interval := time.Second / time.Duration(hz)
			c := serverclock.New(serverclock.Remote(interval))
			now, server, sent := time.Duration(0), 0.0, time.Duration(-1)
			// run returns how far the clock is off after a time to settle.
			run := func(rate float64, settle time.Duration) (off time.Duration) {
				for end, settled := now+settle+6*time.Second, now+settle; now < end; now += ms {
					server += rate * float64(ms)
					if at := time.Duration(server); at >= sent+interval {
						sent = at - at%interval
						c.Observe(now+20*ms+time.Duration(rng.Float64()*float64(jitter)), sent)
					}
					if at, ok := c.Server(now+20*ms, 20*ms); ok && now >= settled {
						want := time.Duration(server) + time.Duration(20*rate*float64(ms))
						off = max(off, max(at-want, want-at))
					}
				}
				return off
			}
			check := func(what string, off time.Duration) {
				if off > interval+20*ms {
					t.Errorf("%d Hz, jitter %v: off by %v after %s", hz, jitter, off, what)
				}
			}
			for _, rate := range []float64{1, 0.6, 1, 1.1, 0.6, 1} {
				check(fmt.Sprintf("a change of the rate to %v", rate), run(rate, 3*time.Second))
			}
			for _, stall := range []time.Duration{100 * ms, 250 * ms, 500 * ms, time.Second, 2 * time.Second, 5 * time.Second} {
				for end := now + stall; now < end; now += ms {
					c.Server(now+20*ms, 20*ms)
				}
				check(fmt.Sprintf("a stall of %v", stall), run(1, 2*time.Second))
			}
		}
	}
}
