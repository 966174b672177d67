//go:build native

package session

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// The client runs its clock as the server's jitter buffer reports, and knows in which tick the
// server will use a call: as in client/ticks_test.go.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Config{Delay: 50 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05, Seed: 7}
		down := link
		down.Seed++
		f := &fleet{t: t, network: uplinktest.NewNetwork(t, link, down)}
		f.servers = []*fleetServer{{}}
		used := map[int32]uint64{} // tick by number of the call
		var world *ds.World[number]
		var tick uint64
		s, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: f.network, Poll: true, TickHz: 60, Joined: func(p *ds.Player) {
			_, err := world.Offer(p)
			uplinktest.Must(t, err)
		}})
		uplinktest.Must(t, err)
		f.servers[0].addr = s.Addr()
		uplinktest.Must(t, ds.Handle(s, "Step", func(_ *ds.Player, fr ds.Frame[number]) {
			if _, again := used[int32(fr.Value.N)]; !again {
				used[int32(fr.Value.N)] = tick
			}
		}, ds.JitterBuffer{}))
		world, err = ds.NewWorld(s, "numbers", ds.WorldConfig[number]{TickHz: 60})
		uplinktest.Must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { _ = s.Serve(ctx) })
		start := time.Now()
		work.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Until(start.Add(time.Duration(float64(tick+1) * float64(time.Second) / 60))))
				tick++
				s.Poll()
				_ = world.Begin(tick)
				_ = world.Put(1, 0, &number{N: 1})
				world.Commit()
				_, _ = world.Send()
			}
		})
		defer func() { cancel(); _ = s.Close(); work.Wait() }()

		c, err := newNative(f.network, s.Addr())
		uplinktest.Must(t, err)
		defer c.close()
		uplinktest.Must(t, errors.Join(c.bind("Step", false), c.subscribe("numbers"), c.connect(f.token(0))))
		expected, n, bound := map[int32]float64{}, int32(0), false
		var off []float64
		var last pace
		for begun := time.Now(); time.Since(begun) < 40*time.Second; {
			server, input, p := c.ticks(0, 0)
			if last = p; bound && c.call(0, n) == nil {
				if time.Since(begun) > 10*time.Second {
					off = append(off, server-time.Since(start).Seconds()*60)
					expected[n] = input
				}
				n++
			}
			interval := time.Second / 60
			if p.rate != 0 {
				interval = time.Duration(float64(interval) / p.rate)
			}
			for next := time.Now().Add(interval); time.Now().Before(next); time.Sleep(min(time.Millisecond, time.Until(next))) {
				c.run(func(e *event) { bound = bound || e.kind == eventBound })
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		var input []float64
		for call, at := range expected {
			if tick, ok := used[call]; ok {
				input = append(input, at-float64(tick))
			}
		}
		slices.Sort(off)
		slices.Sort(input)
		middle, of := off[len(off)/2], input[len(input)/2]
		t.Logf("server's tick off by %.2f, input's by %.2f; %d of %d calls used; %+v", middle, of, len(input), len(expected), last)
		if math.Abs(middle) > 0.5 || math.Abs(of) > 1 || len(input) < len(expected)*90/100 {
			t.Error("want half a tick at most, one for inputs, and 90 % of the calls, of which 5 % are lost")
		}
		if last.target <= 0 || last.slack == 0 || last.missing == 0 || math.Abs(last.rate-1) > 0.02 {
			t.Errorf("%+v", last)
		}
	})
}
