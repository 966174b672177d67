package ds_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// game polls a server at a rate, and plays clients that call as often as it says.
type game struct {
	srv     *uplinktest.Server
	every   time.Duration
	players []*gamer
	polled  func(calls int) // after each Poll
}

type gamer struct {
	move  *client.Stream[uplinktest.Move]
	every time.Duration // between calls, by the player's clock
	drift float64       // by how much that runs faster
	deaf  bool          // does not follow the server
	next  uint64
	call  time.Time
}

// play plays for so long.
func (g *game) play(t *testing.T, d time.Duration) {
	t.Helper()
	start := time.Now()
	tick := start
	for _, p := range g.players {
		p.call = start.Add(7 * ms)
	}
	for tick.Sub(start) < d {
		at := tick
		for _, p := range g.players {
			if p.call.Before(at) {
				at = p.call
			}
		}
		time.Sleep(time.Until(at))
		for i, p := range g.players {
			if !p.call.Equal(at) {
				continue
			}
			m := uplinktest.MoveAt(uint64(i), p.next)
			uplinktest.Must(t, p.move.Send(&m))
			p.next++
			every := p.every
			if !p.deaf {
				every = p.move.Pace().Interval(every)
			}
			p.call = at.Add(time.Duration(float64(every) / (1 + p.drift)))
		}
		if at.Equal(tick) {
			synctest.Wait()
			if n := g.srv.Poll(); g.polled != nil {
				g.polled(n)
			}
			tick = tick.Add(g.every)
		}
	}
}

const hz60 = time.Second / 60

// TestJitterBuffer verifies that over a link with jitter and loss, and with clocks that drift, each
// Poll delivers one frame of each player in order, and that the slack reaches its target.
func TestJitterBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 80*ms, simnet.Config{Jitter: 5 * ms, Loss: 0.03, Seed: 60})
		type log struct {
			next, calls, missed uint64
			polls               int // of the last call
		}
		logs := map[*ds.Player]*log{}
		polls := 0
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll: true, JitterBuffer: &ds.JitterBuffer{},
			Joined: func(p *ds.Player) { logs[p] = &log{} },
			Left:   func(p *ds.Player, _ error) { delete(logs, p) },
		}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
				l := logs[p]
				if l.calls > 0 && l.polls == polls {
					t.Errorf("frame %d is the second in a Poll", f.Seq)
				}
				if f.Seq != l.next+f.Missed || f.Late || f.Repeated {
					t.Errorf("frame %d comes after %d, %d missed: %+v", f.Seq, l.next, f.Missed, f)
				}
				l.next, l.polls = f.Seq+1, polls
				l.calls++
				l.missed += f.Missed
			})
		})
		g := &game{srv: srv, every: hz60, polled: func(int) { polls++ }}
		for _, drift := range []float64{-500e-6, 0, 500e-6} {
			conn := uplinktest.Dial(t, network, client.Config{})
			g.players = append(g.players, &gamer{move: uplinktest.Bind(t, conn, "Move"), every: hz60, drift: drift})
		}
		g.play(t, time.Minute)
		if len(logs) != 3 {
			t.Fatalf("%d players", len(logs))
		}
		for p, l := range logs {
			st, ok := p.Buffer("Move")
			off := max(st.Slack-st.Target, st.Target-st.Slack)
			t.Logf("%d calls, %d missed, %+v", l.calls, l.missed, st)
			if !ok || off > 10*ms || st.Missing > 20 || l.missed > st.Missing || l.calls < 3500 || st.Resyncs > 1 {
				t.Errorf("%d calls, %d missed, %+v", l.calls, l.missed, st)
			}
		}
		sum := srv.Stats().RPCs[0].Buffer
		if sum.Buffers != 3 || sum.Released < 3*3500 || sum.Target < 5*ms || sum.Target > 60*ms {
			t.Errorf("all: %+v", sum)
		}
		settle(time.Second)
		for i, p := range g.players {
			pace := p.move.Pace()
			if pace.Target == 0 || pace.Missing > sum.Missing || pace.Late > sum.Late || pace.Rate < 0.98 || pace.Rate > 1.02 {
				t.Errorf("player %d: %+v, of all: %+v", i, pace, sum)
			}
		}
	})
}

// TestJitterBufferRepeats verifies that with Repeat each Poll calls the handler, with the last
// frame if one is missing.
func TestJitterBufferRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.2, Seed: 61})
		var last ds.Frame[uplinktest.Move]
		var next, row, repeated, refused uint64
		playing := false
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, JitterBuffer: &ds.JitterBuffer{Repeat: 3}}, func(s *ds.Server) error {
			err := ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
				switch {
				case f.Repeated:
					row++
					repeated++
					if f.Missed != 0 || row > 3 || !f.Value.Equal(&last.Value) || f.Seq < next {
						t.Errorf("repeated %d times: %+v, last %+v", row, f, last)
					}
					return
				case playing && f.Seq != next+row+f.Missed:
					t.Errorf("frame %d comes after %d and %d repeated, %d missed", f.Seq, next, row, f.Missed)
				}
				playing, row, last, next = true, 0, f, f.Seq+1
				last.Value.Payload = append([]byte(nil), f.Value.Payload...)
			})
			if err != nil {
				return err
			}
			return ds.Validate(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) error {
				if f.Repeated {
					refused++
				}
				return nil
			})
		})
		idle := 0
		g := &game{srv: srv, every: hz60, polled: func(calls int) {
			if playing && calls != 1 {
				idle++
			}
		}}
		conn := uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyOff})
		g.players = []*gamer{{move: uplinktest.Bind(t, conn, "Move"), every: hz60}}
		g.play(t, 20*time.Second)
		st := srv.Stats().RPCs[0].Buffer
		if repeated < 150 || st.Repeated != repeated || idle > 10 || refused != 0 {
			t.Errorf("%d repeated, %d Polls without a call, %d were validated: %+v", repeated, idle, refused, st)
		}
	})
}

// TestJitterBufferRejected verifies that a rejected frame is not repeated if the next one is
// missing.
func TestJitterBufferRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Loss: 0.3, Seed: 65})
		var repeated, refused int
		refuses := false
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, JitterBuffer: &ds.JitterBuffer{Repeat: 3}}, func(s *ds.Server) error {
			err := ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
				if f.Repeated {
					repeated++
				}
				if refuses {
					t.Errorf("frame %d, repeated: %v, comes after one that was refused", f.Seq, f.Repeated)
				}
			})
			if err != nil {
				return err
			}
			return ds.Validate(s, "Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) error {
				if refuses = f.Seq%2 == 0; refuses {
					refused++
					return errors.New("even")
				}
				return nil
			})
		})
		conn := uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyOff})
		g := &game{srv: srv, every: hz60, players: []*gamer{{move: uplinktest.Bind(t, conn, "Move"), every: hz60}}}
		g.play(t, 10*time.Second)
		if repeated < 50 || refused < 150 {
			t.Errorf("%d repeated, %d refused", repeated, refused)
		}
	})
}

// TestJitterBufferLate verifies that late frames are dropped and counted, or with DeliverLate
// delivered and marked.
func TestJitterBufferLate(t *testing.T) {
	for name, deliver := range map[string]bool{"dropped": false, "delivered": true} {
		bubble(t, name, func(t *testing.T) {
			network := linkedBy(t, 60*ms, simnet.Config{Jitter: 15 * ms, Seed: 62})
			var late uint64
			seen := map[uint64]bool{}
			srv := uplinktest.Serve(t, network, ds.Config{Poll: true, DeliverLate: deliver, JitterBuffer: &ds.JitterBuffer{Depth: 5 * ms}}, handles("Move", func(_ *ds.Player, f ds.Frame[uplinktest.Move]) {
				if seen[f.Seq] {
					t.Errorf("frame %d comes twice", f.Seq)
				}
				seen[f.Seq] = true
				if f.Late {
					late++
				}
			}))
			conn := uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyOff})
			g := &game{srv: srv, every: hz60, players: []*gamer{{move: uplinktest.Bind(t, conn, "Move"), every: hz60}}}
			g.play(t, 20*time.Second)
			st := srv.Stats().RPCs[0]
			if deliver && (late < 100 || late != st.Buffer.Late || st.Drops[ds.LateForTick] != 0 || len(seen) < 1190) {
				t.Errorf("%d late, %d came: %+v", late, len(seen), st)
			}
			if !deliver && (late != 0 || st.Drops[ds.LateForTick] < 100 || st.Drops[ds.LateForTick] != st.Buffer.Late) {
				t.Errorf("%d late: %+v", late, st)
			}
		})
	}
}

// TestJitterBufferRates verifies that a game that polls more or less often than players call
// receives the frames evenly.
func TestJitterBufferRates(t *testing.T) {
	for name, c := range map[string]struct {
		calls float64 // a second
		most  int     // in a Poll
	}{"half": {30, 1}, "same": {60, 1}, "twice": {120, 2}} {
		bubble(t, name, func(t *testing.T) {
			network := linkedBy(t, 60*ms, simnet.Config{Jitter: 3 * ms, Seed: 63})
			srv := uplinktest.Serve(t, network, ds.Config{Poll: true}, func(s *ds.Server) error {
				if err := ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {}); err != nil {
					return err
				}
				return s.SetJitterBuffer("Move", &ds.JitterBuffer{TickHz: 60})
			})
			conn := uplinktest.Dial(t, network, client.Config{})
			settle(time.Second)
			srv.Poll()
			g := &game{srv: srv, every: hz60, polled: func(calls int) {
				if calls > c.most {
					t.Errorf("%d calls in a Poll", calls)
				}
			}}
			every := time.Duration(float64(time.Second) / c.calls)
			g.players = []*gamer{{move: uplinktest.Bind(t, conn, "Move", client.BindConfig{RateHz: c.calls}), every: every}}
			g.play(t, 20*time.Second)
			if st := srv.Stats().RPCs[0].Buffer; float64(st.Released) < 19*c.calls || st.Missing > 20 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestJitterBufferFlood verifies that a player that calls far above its declared rate, or does not
// follow the pace, affects only itself.
func TestJitterBufferFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := linkedBy(t, 60*ms, simnet.Config{Seed: 64})
		calls, in := map[*ds.Player]int{}, 0
		srv := uplinktest.Serve(t, network, ds.Config{Poll: true, JitterBuffer: &ds.JitterBuffer{}, RateSlack: ds.MaxRateSlack}, handles("Move", func(p *ds.Player, _ ds.Frame[uplinktest.Move]) { calls[p]++; in++ }))
		most := 0
		g := &game{srv: srv, every: hz60, polled: func(int) {
			if in > 2 {
				t.Errorf("%d calls of two players in a Poll", in)
			}
			in = 0
			most = max(most, srv.Stats().RPCs[0].Buffer.Held)
		}}
		for _, every := range []time.Duration{hz60, hz60 / 5} {
			conn := uplinktest.Dial(t, network, client.Config{})
			g.players = append(g.players, &gamer{move: uplinktest.Bind(t, conn, "Move"), every: every, deaf: true})
		}
		g.play(t, 20*time.Second)
		st := srv.Stats().RPCs[0]
		if len(calls) != 2 || most > 128+16 || st.Drops[ds.Discarded] < 4000 {
			t.Errorf("%d are held at most, %v: %+v", most, calls, st)
		}
		for _, n := range calls {
			if n < 1100 {
				t.Errorf("%d calls in 20 s", n)
			}
		}
	})
}

// TestJitterBufferLeave verifies that frames are delivered between Joined and Left only, and that a
// pause does not count as missing ticks.
func TestJitterBufferLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		here := map[*ds.Player]bool{}
		srv := uplinktest.Serve(t, network, ds.Config{
			Poll: true, JitterBuffer: &ds.JitterBuffer{},
			Joined: func(p *ds.Player) { here[p] = true },
			Left:   func(p *ds.Player, _ error) { delete(here, p) },
		}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
				if !here[p] {
					t.Errorf("frame %d of a player who is not there", f.Seq)
				}
			})
		})
		g := &game{srv: srv, every: hz60}
		conn := uplinktest.Dial(t, network, client.Config{})
		g.players = []*gamer{{move: uplinktest.Bind(t, conn, "Move"), every: hz60}}
		g.play(t, 5*time.Second)
		players := g.players
		g.players = nil
		g.play(t, 10*time.Second)
		g.players = players
		g.play(t, 5*time.Second)
		if st := srv.Stats().RPCs[0].Buffer; st.Missing > 40 || st.Released < 590 || st.Resyncs != 1 {
			t.Errorf("after a pause: %+v", st)
		}
		uplinktest.Must(t, conn.Close())
		g.players = nil
		g.play(t, time.Second)
		if st := srv.Stats().RPCs[0].Buffer; st.Buffers != 0 || st.Held != 0 || st.Released < 590 || len(here) != 0 {
			t.Errorf("when nobody is there: %+v", st)
		}
	})
}

// TestJitterBufferConfig verifies that errors name the field.
func TestJitterBufferConfig(t *testing.T) {
	for want, c := range map[string]ds.Config{
		"Config.Poll": {JitterBuffer: &ds.JitterBuffer{}},
		"TickHz":      {Poll: true, JitterBuffer: &ds.JitterBuffer{TickHz: 0.5}},
		"Repeat":      {Poll: true, JitterBuffer: &ds.JitterBuffer{Repeat: -1}},
		"Depth":       {Poll: true, JitterBuffer: &ds.JitterBuffer{Depth: time.Minute}},
		"MinDepth":    {Poll: true, JitterBuffer: &ds.JitterBuffer{MinDepth: 50 * ms, MaxDepth: 40 * ms}},
	} {
		if srv, err := ds.Listen("127.0.0.1:0", c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that names %s", err, want)
			if err == nil {
				uplinktest.Must(t, srv.Close())
			}
		}
	}
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	defer func() { uplinktest.Must(t, srv.Close()) }()
	uplinktest.Must(t, ds.Handle(srv, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {}))
	for rpc, want := range map[string]string{"Move": "Config.Poll", "Jump": "Handle"} {
		if err := srv.SetJitterBuffer(rpc, &ds.JitterBuffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", rpc, err, want)
		}
	}
}
