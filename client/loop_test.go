package client_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
	"github.com/uplink-rpc/uplink/predict"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// push is the input of a sled, which the server receives rounded, and sled its state. Where it is
// depends on all inputs so far.
type push struct {
	Force float32 `uplink:"resolution=0.25"`
}

type sled struct{ X, Speed int32 }

func (s *sled) step(in *push) {
	s.Speed = s.Speed*7/8 + int32(in.Force*16)
	s.X += s.Speed
}

// loopGame is a server with one sled, and a client that predicts it.
type loopGame struct {
	t       *testing.T
	network *uplinktest.Network
	conn    *client.Conn
	loop    *client.Loop[sled, push]
	view    *client.SnapshotView[sled]
	shown   client.Snapshot[sled]
	firsts  int    // calls of Input with the sequence number 0
	stop    func() // stops the server

	mu  sync.Mutex
	srv *uplinktest.Server
	at  sled // the server's
	gen uint8
}

const loopTick = time.Second / 60

func newLoopGame(t *testing.T, link simnet.Config) *loopGame {
	g := &loopGame{t: t}
	down := link
	down.Seed++
	g.network = uplinktest.NewNetwork(t, link, down)
	g.serve(0, ds.ForPrediction{})
	g.conn = uplinktest.Dial(t, g.network, client.Config{})
	move, err := client.Bind[push](t.Context(), g.conn, "Move", client.BindConfig{RateHz: 60})
	uplinktest.Must(t, err)
	g.view, err = client.SubscribeSnapshots(t.Context(), g.conn, "sleds", client.SnapshotConfig[sled]{})
	uplinktest.Must(t, err)
	g.loop, err = client.NewLoop(move, sled{}, client.LoopConfig[sled, push]{Input: g.input, Predict: predict.Config[sled, push]{
		Step: (*sled).step, Distance: func(a, b *sled) float64 { return math.Abs(float64(a.X - b.X)) },
	}})
	uplinktest.Must(t, err)
	return g
}

// input holds a force for half a second.
func (g *loopGame) input(at time.Time, seq uint64) push {
	if seq == 0 {
		g.firsts++
	}
	return push{0.3 * float32(int(at.UnixMilli()/500*7)%21-10)}
}

// serve starts a server whose sled is at x.
func (g *loopGame) serve(x int32, options ...ds.HandleOption) {
	g.at = sled{X: x}
	var world *ds.World[sled]
	g.srv = uplinktest.Serve(g.t, g.network, ds.Config{Poll: true, TickHz: 60, Joined: func(p *ds.Player) {
		_, err := world.Offer(p)
		uplinktest.Must(g.t, err)
	}}, func(s *ds.Server) error {
		return ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[push]) {
			g.at.step(&f.Value)
		}, append(options, ds.JitterBuffer{Repeat: 3})...)
	})
	var err error
	world, err = ds.NewWorld(g.srv.Server, "sleds", ds.WorldConfig[sled]{TickHz: 60})
	uplinktest.Must(g.t, err)
	done, stopped := make(chan struct{}), make(chan struct{})
	g.stop = sync.OnceFunc(func() { close(done); <-stopped; _ = g.srv.Close() })
	g.t.Cleanup(g.stop)
	go func() {
		defer close(stopped)
		start := time.Now()
		for tick := uint64(1); ; tick++ {
			select {
			case <-done:
				return
			case <-time.After(time.Until(start.Add(time.Duration(tick) * loopTick))):
			}
			g.mu.Lock()
			g.srv.Poll()
			uplinktest.Must(g.t, world.Begin(tick))
			uplinktest.Must(g.t, world.Put(1, g.gen, &g.at))
			_, err := world.Send()
			uplinktest.Must(g.t, err)
			g.mu.Unlock()
		}
	}()
}

// play runs the client for a time, one frame each time a tick is due.
func (g *loopGame) play(lasts time.Duration) {
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Until(g.frame()))
	}
}

func (g *loopGame) frame() (next time.Time) {
	if g.view.Latest(&g.shown) {
		uplinktest.Must(g.t, g.loop.Correct(g.shown.Tick, g.shown.IDs[0], g.shown.Processed, &g.shown.Objects[0]))
	}
	next, err := g.loop.Advance(time.Now())
	uplinktest.Must(g.t, err)
	return next
}

// during returns what a client does in a time.
func (g *loopGame) during(lasts time.Duration) (d client.LoopStats) {
	before := g.loop.Stats()
	g.play(lasts)
	d = g.loop.Stats()
	d.Inputs, d.Corrections, d.States, d.Skipped = d.Inputs-before.Inputs, d.Corrections-before.Corrections, d.States-before.States, d.Skipped-before.Skipped
	d.Unsent -= before.Unsent
	return d
}

// TestLoop plays over links with jitter and loss. Where the server handles each input once, no
// state corrects the prediction, although the server receives rounded inputs.
func TestLoop(t *testing.T) {
	for _, c := range []struct {
		loss        float64
		corrections uint64 // at most, in 20 s
	}{{0, 0}, {0.05, 10}, {0.2, 200}} {
		t.Run(fmt.Sprint(c.loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLoopGame(t, simnet.Config{Delay: 40 * ms, Jitter: 5 * ms, Loss: c.loss, Seed: 1})
				if g.frame(); g.loop.Known() {
					t.Error("a state is known before the first snapshot")
				}
				g.play(5 * time.Second)
				d := g.during(20 * time.Second)
				t.Logf("%+v, %d inputs wait", d, g.loop.Waiting())
				if d.Inputs < 1190 || d.Inputs > 1210 || d.States < 800 || d.Corrections > c.corrections || d.Skipped+d.Unsent != 0 {
					t.Errorf("%+v in 20 s", d)
				}
				if n := g.loop.Waiting(); n < 5 || n > 20 || !g.loop.Known() || g.firsts != 1 {
					t.Errorf("%d inputs wait over a path of 80 ms, known %v, %d sessions", n, g.loop.Known(), g.firsts)
				}
			})
		})
	}
}

// TestLoopStalls stops a client for a time. Of short stalls it makes up for all ticks, of long ones
// for none. It mispredicts for a second at most.
func TestLoopStalls(t *testing.T) {
	for _, stall := range []time.Duration{100 * ms, 140 * ms, 250 * ms, 500 * ms, time.Second, 5 * time.Second} {
		t.Run(stall.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLoopGame(t, simnet.Config{Delay: 40 * ms, Jitter: 3 * ms, Seed: 1})
				g.play(10 * time.Second)
				begun, waiting := g.loop.Stats(), g.loop.Waiting()
				time.Sleep(stall)
				g.play(time.Second)
				after := g.during(4 * time.Second)
				st := g.loop.Stats()
				t.Logf("%+v", st)
				skipped, inputs := st.Skipped-begun.Skipped, st.Inputs-begun.Inputs
				ticks := uint64((stall + 5*time.Second) / loopTick)
				if stall <= 150*ms && skipped != 0 || stall > 150*ms && skipped < uint64(stall/loopTick)-1 || inputs+skipped < ticks-20 || inputs+skipped > ticks+20 {
					t.Errorf("%d ticks skipped, and %d inputs of %d ticks", skipped, inputs, ticks)
				}
				if after.Corrections != 0 || g.loop.Waiting() > waiting+3 || g.firsts != 1 {
					t.Errorf("%d corrections after a second, %d inputs wait, before %d", after.Corrections, g.loop.Waiting(), waiting)
				}
			})
		})
	}
}

// TestLoopSessions restarts the server, which then has the sled elsewhere. The client plays on from
// there. That is no correction, and neither is a respawn.
func TestLoopSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLoopGame(t, simnet.Config{Delay: 40 * ms, Seed: 1})
		g.play(5 * time.Second)
		g.stop()
		g.play(time.Second)
		if st := g.loop.Stats(); st.Unsent < 30 {
			t.Errorf("without a server: %+v", st)
		}
		g.serve(1_000_000, ds.ForPrediction{})
		g.play(5 * time.Second)
		x := g.loop.State().X
		if st := g.loop.Stats(); g.firsts != 2 || x < 900_000 || st.Corrections != 0 || st.Late != 0 || g.loop.Waiting() > 15 {
			t.Errorf("in session %d at %d: %+v", g.firsts, x, st)
		}
		g.mu.Lock()
		g.at, g.gen = sled{X: -1_000_000}, 1
		g.mu.Unlock()
		g.play(time.Second)
		if st := g.loop.Stats(); g.loop.State().X > -900_000 || st.Corrections != 0 {
			t.Errorf("after a respawn: at %d, %+v", g.loop.State().X, st)
		}
		g.mu.Lock()
		g.at.X += 1000 // something pushes the sled
		g.mu.Unlock()
		g.play(time.Second)
		if st := g.loop.Stats(); st.Corrections != 1 || st.Sum != 1000 {
			t.Errorf("after a push: %+v", st)
		}
	})
}

// TestLoopPace plays by clocks that run fast or slow. The loop follows the server's buffer, so that
// no input is dropped, and as many wait as with a right clock.
func TestLoopPace(t *testing.T) {
	for _, rate := range []float64{0.9995, 1, 1.0005} {
		synctest.Test(t, func(t *testing.T) {
			g := newLoopGame(t, simnet.Config{Delay: 40 * ms, Jitter: 3 * ms, Seed: 1})
			begun := time.Now()
			clock := func() time.Time { return begun.Add(time.Duration(float64(time.Since(begun)) * rate)) }
			for time.Since(begun) < 60*time.Second {
				if g.view.Latest(&g.shown) {
					uplinktest.Must(t, g.loop.Correct(g.shown.Tick, g.shown.IDs[0], g.shown.Processed, &g.shown.Objects[0]))
				}
				next, err := g.loop.Advance(clock())
				uplinktest.Must(t, err)
				time.Sleep(time.Duration(math.Ceil(float64(next.Sub(clock())) / rate)))
			}
			b, st := g.srv.Stats().RPCs[0].Buffer, g.loop.Stats()
			t.Logf("clock %v: %+v, %d inputs wait, server %+v", rate, st, g.loop.Waiting(), b)
			if b.Skipped != 0 || b.Late > 20 || st.Inputs < 3580 || st.Inputs > 3620 || g.loop.Waiting() > 15 {
				t.Error("want no input discarded, and 3,600 inputs")
			}
		})
	}
}

// TestLoopErrors checks that mistakes are errors: in the configuration, at a server that does not
// tell what it has processed, and after Close.
func TestLoopErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLoopGame(t, simnet.Config{Delay: 10 * ms, Seed: 1})
		g.play(time.Second)
		input := client.LoopConfig[sled, push]{Input: g.input}
		for want, cfg := range map[string]client.LoopConfig[sled, push]{"LoopConfig.Input": {}, "LoopConfig.Predict": input} {
			if l, err := client.NewLoop(client.LoopStream(g.loop), sled{}, cfg); l != nil || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		g.stop()
		g.serve(0)
		var err error
		for begun := time.Now(); time.Since(begun) < 10*time.Second && err == nil; {
			if g.view.Latest(&g.shown) {
				err = g.loop.Correct(g.shown.Tick, g.shown.IDs[0], g.shown.Processed, &g.shown.Objects[0])
			}
			next, failed := g.loop.Advance(time.Now())
			uplinktest.Must(t, failed)
			time.Sleep(time.Until(next))
		}
		if err == nil || !strings.Contains(err.Error(), "RPC Move") || !strings.Contains(err.Error(), "ds.ForPrediction") {
			t.Errorf("without ds.ForPrediction: %v", err)
		}
		uplinktest.Must(t, g.conn.Close())
		if _, err := g.loop.Advance(time.Now()); err == nil {
			t.Error("no error after Close")
		}
	})
}

func TestLoopAllocations(t *testing.T) {
	_, _, stream, got := loopback(t, client.Config{}, client.BindConfig{})
	loop, err := client.NewLoop(stream, 0, client.LoopConfig[int, uplinktest.Move]{
		Input: func(_ time.Time, seq uint64) uplinktest.Move { return uplinktest.MoveAt(1, seq) },
		Predict: predict.Config[int, uplinktest.Move]{
			Step:     func(n *int, _ *uplinktest.Move) { *n++ },
			Distance: func(a, b *int) float64 { return math.Abs(float64(*a - *b)) },
		},
	})
	uplinktest.Must(t, err)
	next, n := time.Now(), 0
	tick := func() {
		next, err = loop.Advance(next)
		uplinktest.Must(t, err)
		n++
		uplinktest.Must(t, loop.Correct(uint64(n), 1, client.Processed{1, 0, byte(n), byte(n >> 8)}, &n))
		<-got
	}
	for range 1000 {
		tick()
	}
	if n := allocs.PerRun(1000, tick); n != 0 {
		t.Errorf("%v allocations per tick", n)
	}
	if st := loop.Stats(); st.Corrections != 0 || st.Replayed != 0 || *loop.State() != n {
		t.Errorf("%+v at %d of %d", st, *loop.State(), n)
	}
}
