package session_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// small returns the configuration of a session on a world that is cheap to simulate.
func small(m session.Mode, o session.Options, l session.Link) session.Config {
	p := world.Default()
	p.Side = 10
	return session.Config{World: p, Mode: m, Options: o, Link: l}
}

func start(t *testing.T, cfg session.Config) *session.Session {
	t.Helper()
	s, err := session.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t *testing.T, s *session.Session, seed uint64, ticks int) {
	t.Helper()
	steer := world.NewScript(seed, 5)
	for range ticks {
		if err := s.Tick(steer.Next(s.Bodies()[0].Position)); err != nil {
			t.Fatal(err)
		}
	}
}

var modes = map[session.Mode]session.Options{
	session.ModeFull:      {Rate: 10},
	session.ModeSnapshots: {Rate: 60},
	session.ModeState:     {Rate: 60, Budget: 256_000},
}

// TestModes checks that each mode shows nearly what the server has, over good and bad links.
func TestModes(t *testing.T) {
	links := map[string]session.Link{
		"good": {},
		"bad":  {RTT: 100 * time.Millisecond, Jitter: 33 * time.Millisecond, Loss: 0.05, Seed: 3},
	}
	for k, o := range modes {
		for name, l := range links {
			t.Run(k.String()+" "+name, func(t *testing.T) {
				s := start(t, small(k, o, l))
				play(t, s, 7, 120)
				s.Meter.Reset()
				play(t, s, 8, 480)
				m := &s.Meter
				t.Logf("%.0f kbit/s, error mean %.4f p99 %.4f max %.4f m, %.2f p99 %.2f°, %d pops, delay %v, wait %d, refused %d %v", m.Kbits(),
					m.Position.Mean(), m.Position.Quantile(0.99), m.Position.Max, m.Turn.Mean(), m.Turn.Quantile(0.99), m.Pops, m.MeanDelay(), m.Wait, m.Rejected, m.LastError)
				if m.Rejected != 0 || m.Kbits() < 1 || m.Position.Count < 500 {
					t.Errorf("refused %d: %v", m.Rejected, m.LastError)
				}
				if m.Position.Mean() > 0.05 || m.Position.Quantile(0.99) > 0.5 {
					t.Errorf("error %.3f m, 99th percentile %.3f m", m.Position.Mean(), m.Position.Quantile(0.99))
				}
				if d := m.MeanDelay(); d < l.RTT/2 || d > time.Second {
					t.Errorf("delay %v", d)
				}
			})
		}
	}
}

// TestBudget checks that traffic stays within the budget, also after the budget changes.
func TestBudget(t *testing.T) {
	for k, o := range modes {
		o.Budget = 128_000
		s := start(t, small(k, o, session.Link{RTT: 40 * time.Millisecond, Seed: 2}))
		play(t, s, 2, 60)
		for _, bits := range []int{64_000, 256_000, 32_000} {
			s.SetBudget(bits)
			play(t, s, 3, 60) // use up the credit or pay the debt
			s.Meter.Reset()
			play(t, s, 4, 240)
			if got := s.Meter.Kbits() * 1000; got > 1.1*float64(bits) || got == 0 {
				t.Errorf("%v: %.0f bit/s, want at most %d", k, got, bits)
			}
		}
	}
}

// TestChange changes mode and link while the world goes on. The client must draw the new mode soon.
func TestChange(t *testing.T) {
	s := start(t, small(session.ModeFull, modes[session.ModeFull], session.Link{Seed: 4}))
	play(t, s, 1, 60)
	for _, k := range []session.Mode{session.ModeSnapshots, session.ModeState, session.ModeFull, session.ModeState, session.ModeSnapshots} {
		if err := s.Use(k, modes[k]); err != nil {
			t.Fatal(err)
		}
		if err := s.SetLink(session.Link{RTT: 60 * time.Millisecond, Loss: 0.02}); err != nil {
			t.Fatal(err)
		}
		before := s.DrawnAt
		play(t, s, 5, 90)
		if s.DrawnAt < before+time.Second/2 || s.Meter.Rejected != 0 {
			t.Errorf("%v: shown %v, was %v; refused %d", k, s.DrawnAt, before, s.Meter.Rejected)
		}
	}
	if err := s.SetLink(session.Link{Loss: 2}); err == nil {
		t.Error("no error")
	}
	if err := s.Use(session.ModeFull, session.Options{Rate: 7}); err == nil {
		t.Error("no error")
	}
}

// TestCompare checks that all variants are measured within each budget, and reproducibly.
func TestCompare(t *testing.T) {
	p := world.Default()
	p.Side = 8
	cfg := session.CompareConfig{
		World: p, Link: session.Link{RTT: 100 * time.Millisecond, Jitter: 33 * time.Millisecond, Loss: 0.05, Seed: 1},
		Time: 2 * time.Second, Warmup: time.Second, Seed: 1, Runs: 2, Budgets: []int{64, 128},
	}
	write := func() ([]*session.Result, string) {
		results, err := session.Compare(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		session.WriteTable(&b, results)
		return results, b.String()
	}
	results, table := write()
	if _, again := write(); again != table {
		t.Errorf("not the same again:\n%s%s", table, again)
	}
	if want := 2*len(session.Variants()) - 1; len(results) != want || strings.Count(table, "\n") != want+2 {
		t.Errorf("%d results, want %d:\n%s", len(results), want, table)
	}
	for _, r := range results {
		if r.Budget > 0 && r.Kbits() > 1.1*float64(r.Budget) || r.Updates == 0 || r.Rejected > 0 {
			t.Errorf("%s in %d: %.1f kbit/s, %d updates, %d refused: %v", r.Variant, r.Budget, r.Kbits(), r.Updates, r.Rejected, r.LastError)
		}
	}
	if svg := session.Figure(results, cfg.Budgets).SVG(); !strings.Contains(svg, "state, not rounded") {
		t.Error(svg)
	}
}

// TestEndpoints runs all modes, also after changes, over a real server in virtual time.
func TestEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		link := simnet.Config{Delay: 50 * time.Millisecond, Jitter: 4 * time.Millisecond, Loss: 0.02, Seed: 1}
		network, err := simnet.NewNetwork(link, link)
		must(err)
		var e *session.Endpoints
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Poll: true, Joined: func(p *ds.Player) { must(e.Joined(p)) }})
		must(err)
		e, err = session.NewEndpoints(srv)
		must(err)
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network})
		must(err)
		e.Connected(conn)

		p := world.Default()
		p.Side = 8
		options := session.Options{Rate: 60, Budget: 256_000, Jitter: 16 * time.Millisecond, Loss: 0.02}
		s, err := session.New(session.Config{World: p, Mode: session.ModeSnapshots, Options: options, New: e.Make})
		must(err)
		play := world.NewScript(1, world.ScriptReach)
		run := func(ticks int) {
			for range ticks {
				srv.Poll()
				must(s.Tick(play.Next(s.Bodies()[0].Position)))
				time.Sleep(world.Tick)
				synctest.Wait()
			}
		}
		const near = -1 // ModeSnapshots with areas
		for i, k := range []session.Mode{session.ModeSnapshots, session.ModeState, near, session.ModeFull, session.ModeState, session.ModeState, near, near, session.ModeSnapshots} {
			options.Sight = 0
			if k == near {
				k, options.Sight = session.ModeSnapshots, 6
			}
			if i > 0 {
				must(s.Use(k, options))
			}
			run(3 * world.TickRate)
			s.Meter.Reset()
			run(4 * world.TickRate)
			m := &s.Meter
			t.Logf("%v: %.0f kbit/s, off by %.3f m, %v behind, %d updates", k, m.Kbits(), m.Position.Mean(), m.MeanDelay(), m.Updates)
			if !s.Drawing || m.Position.Mean() > 0.2 || m.Updates == 0 || m.Rejected > 0 || m.MeanDelay() > time.Second/2 || m.MeanDelay() < 50*time.Millisecond {
				t.Errorf("%v: off by %v m in the mean, %v behind, %d updates, %d refused: %v", k, m.Position.Mean(), m.MeanDelay(), m.Updates, m.Rejected, m.LastError)
			}
			checkSight(t, s, options.Sight)
			if k != session.ModeFull && (m.Kbits() > 260 || m.Kbits() < 1) {
				t.Errorf("%v: %.0f kbit/s", k, m.Kbits())
			}
		}
		must(s.Close())
		must(conn.Close())
		e.Wait()
		must(srv.Close())
		must(<-served)
	})
}

// checkSight checks that the client draws the cubes within sight of its own, and none that are much
// farther away than the cells it sees.
func checkSight(t *testing.T, s *session.Session, sight float64) {
	t.Helper()
	bodies, unseen := s.Bodies(), 0
	for i := range bodies {
		d := math.Hypot(bodies[i].Position[0]-bodies[0].Position[0], bodies[i].Position[1]-bodies[0].Position[1])
		const slack = 2 // the player moves on while snapshots travel
		switch drawn := !s.Drawn[i].Unseen; {
		case !drawn && (sight == 0 || d < sight-slack):
			t.Errorf("cube %d, %.1f m away, is not drawn", i, d)
		case drawn && sight > 0 && d > sight+2+4*math.Sqrt2+slack:
			t.Errorf("cube %d, %.1f m away, is drawn", i, d)
		case !drawn:
			unseen++
		}
	}
	if t.Logf("%d of %d cubes are not drawn", unseen, len(bodies)); sight > 0 && unseen == 0 {
		t.Error("all cubes are drawn")
	}
}
