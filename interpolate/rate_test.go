package interpolate_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
)

// rated is a server's time that runs at the rates of its phases, each of ten seconds.
func rated(phases []float64) func(time.Duration) time.Duration {
	return func(d time.Duration) time.Duration {
		server := 0.0
		for i, rate := range phases {
			passed := min(max(0, d.Seconds()-float64(10*i)), 10)
			if i == len(phases)-1 {
				passed = max(0, d.Seconds()-float64(10*i))
			}
			server += rate * passed
		}
		return time.Duration(server * float64(time.Second))
	}
}

// TestRates plays snapshots of servers whose ticks take longer or shorter than they should, and of
// servers whose rate changes at once. Without packet loss, playback never reaches the newest
// snapshot, and its time does not stand still.
func TestRates(t *testing.T) {
	for _, hz := range []int{60, 20, 10} {
		for _, jitter := range []time.Duration{0, 8 * ms} {
			for _, phases := range [][]float64{
				{1}, {0.95}, {0.9}, {0.8}, {0.5}, {1.1}, {1, 0.9, 1}, {1, 0.8, 1.1, 1}, {1, 0.5, 1}, {0.5, 1.1, 0.5}, {0.7, 0.6, 0.9}, {1, 0.6}, {1.1, 0.6}, {1.1, 0.6, 1.1, 0.6}, {1.2, 0.5}, {2, 0.5},
			} {
				for seed := range uint64(2) {
					name := fmt.Sprintf("%d Hz, jitter %v, rates %v, seed %d", hz, jitter, phases, seed)
					interval := time.Second / time.Duration(hz)
					b := newBuffer(t, interpolate.Config{Interval: interval})
					server := rated(phases)
					var packets []time.Duration // when they are sent
					for k, at := 0, time.Duration(0); at < 40*time.Second; at += ms / 2 {
						if server(at) >= time.Duration(k)*interval {
							packets = append(packets, at)
							k++
						}
					}
					playRated(t, b, name, packets, interval, lossy(seed, 0, jitter), server)
				}
			}
		}
	}
}

func playRated(t *testing.T, b *buffer, name string, packets []time.Duration, interval time.Duration, delay func() time.Duration, server func(time.Duration) time.Duration) {
	t.Helper()
	type arrival struct{ at, server time.Duration }
	var flying []arrival
	for k, at := range packets {
		flying = append(flying, arrival{at + delay(), time.Duration(k) * interval})
	}
	last, starved, stopped, frames, off := time.Duration(-1), 0, 0, 0, 0.0
	newest := time.Duration(-1)
	for now := time.Duration(0); now < 40*time.Second; now += time.Second / 144 {
		rest := flying[:0]
		for _, a := range flying {
			if a.at > now {
				rest = append(rest, a)
				continue
			}
			_ = b.Add(a.at, a.server, []uint32{7}, []thing{still(a.server.Seconds())})
			newest = max(newest, a.server)
		}
		flying = rest
		play, ok := b.Play(now)
		if !ok || now < 2*time.Second {
			continue
		}
		frames++
		if play > newest {
			starved++
		}
		if play <= last {
			stopped++
		}
		last = play
		if now%(10*time.Second) > 5*time.Second {
			off = max(off, math.Abs((server(now-40*ms) - play - b.Stats().Delay).Seconds()))
		}
	}
	st := b.Stats()
	t.Logf("%s: of %d frames %d starved, %d stopped; 5 s after a change the delay is off by up to %.0f ms; %d restarts, rate %.3f", name, frames, starved, stopped, 1000*off, st.Restarts, st.Rate)
	if starved+stopped != 0 || off > 0.02 {
		t.Error("want none, and 20 ms")
	}
}
