package ds_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type stamp struct {
	Ms uint32 `uplink:"kind=bits"`
}

// stalled is a game in which a loop stalls once.
type stalled struct {
	server  bool // stalls; else the client
	catchUp bool // runs the missed ticks at once after it; else skips them
	follows bool // the client follows the pace
	length  time.Duration
}

// TestStalls checks that the age of inputs is what it was, times 1.2, within five seconds after one
// stall of a server's loop, or of a client's, and that no input is discarded if the server stalls
// for less than twice the maximum depth of a buffer.
func TestStalls(t *testing.T) {
	for _, server := range []bool{true, false} {
		for _, catchUp := range []bool{true, false} {
			for _, follows := range []bool{true, false} {
				for _, length := range []time.Duration{100 * ms, 250 * ms, 500 * ms, time.Second, 2 * time.Second, 5 * time.Second} {
					s := stalled{server, catchUp, follows, length}
					t.Run(fmt.Sprintf("server %v, catches up %v, client follows %v, %v", server, catchUp, follows, length), func(t *testing.T) {
						synctest.Test(t, s.play)
					})
				}
			}
		}
	}
}

func (s stalled) play(t *testing.T) {
	const tick = time.Second / 60
	link := simnet.Config{Delay: 40 * ms, Jitter: 3 * ms, Seed: 3}
	network := uplinktest.NewNetwork(t, link, simnet.Config{Delay: 40 * ms, Jitter: 3 * ms, Seed: 4})
	start := time.Now()
	var mu sync.Mutex
	var sum, count time.Duration
	srv := uplinktest.Serve(t, network, ds.Config{Poll: true, TickHz: 60}, func(srv *ds.Server) error {
		return ds.Handle(srv, "Move", func(_ *ds.Player, f ds.Frame[stamp]) {
			mu.Lock()
			defer mu.Unlock()
			sum += time.Since(start) - time.Duration(f.Value.Ms)*ms
			count++
		}, ds.JitterBuffer{})
	})
	age := func() time.Duration { // the mean since the last call
		mu.Lock()
		defer mu.Unlock()
		mean := sum / max(count, 1)
		sum, count = 0, 0
		return mean
	}
	from := 20 * time.Second
	// loop calls step every tick until the stop, and stalls if it is to.
	stop := make(chan struct{})
	loop := func(stalls bool, interval func() time.Duration, step func()) {
		for next := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(time.Until(next)):
			}
			if stalls && time.Since(start) >= from {
				stalls = false
				time.Sleep(s.length)
				if !s.catchUp {
					next = time.Now()
				}
			}
			step()
			next = next.Add(interval())
		}
	}
	var loops sync.WaitGroup
	defer func() { close(stop); loops.Wait() }()
	loops.Go(func() {
		loop(s.server, func() time.Duration { return tick }, func() { srv.Poll() })
	})
	conn := uplinktest.Dial(t, network, client.Config{})
	move, err := client.Bind[stamp](t.Context(), conn, "Move", client.BindConfig{RateHz: 60})
	uplinktest.Must(t, err)
	loops.Go(func() {
		interval := func() time.Duration {
			if s.follows {
				return move.Pace().Interval(tick)
			}
			return tick
		}
		loop(!s.server, interval, func() { _, _ = move.Send(&stamp{uint32(time.Since(start) / ms)}) })
	})
	time.Sleep(time.Until(start.Add(from - 2*time.Second)))
	age()
	time.Sleep(2*time.Second - ms)
	before, rtt, discarded := age(), conn.RTT(), srv.Stats().RPCs[0].Buffer.Skipped
	time.Sleep(s.length + 2*time.Second)
	after2 := conn.RTT()
	time.Sleep(3 * time.Second)
	age()
	time.Sleep(time.Second)
	after, b := age(), srv.Stats().RPCs[0].Buffer
	b.Skipped -= discarded
	t.Logf("links seeds 3 and 4: age of inputs %v before, %v five seconds after; RTT %v and %v; %d late, %d missing, %d discarded",
		before.Round(ms), after.Round(ms), rtt.Round(ms), after2.Round(ms), b.Late, b.Missing, b.Skipped)
	if after > before*6/5+ms {
		t.Error("inputs are older than before")
	}
	if off := (after2 - rtt).Abs(); off > max(rtt/10, 5*ms) {
		t.Errorf("the round-trip time differs by %v", off)
	}
	if s.server && s.length < 500*ms && (s.catchUp || s.follows) && b.Skipped != 0 {
		t.Errorf("%d inputs are discarded", b.Skipped)
	}
}
