package session_test

import (
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/script"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// small is a session on a world that takes little time.
func small(k way.Kind, o way.Options, l session.Link) session.Config {
	p := world.Default()
	p.Side = 10
	return session.Config{World: p, Way: k, Options: o, Link: l}
}

// play runs a script for some ticks.
func play(t *testing.T, s *session.Session, seed uint64, ticks int) {
	t.Helper()
	steer := script.New(seed, 5)
	for range ticks {
		if err := s.Tick(steer.Next(s.Bodies()[0].Position)); err != nil {
			t.Fatal(err)
		}
	}
}

var ways = map[way.Kind]way.Options{
	way.Full:      {Rate: 10},
	way.Snapshots: {Rate: 60},
	way.State:     {Rate: 60, Budget: 256_000},
}

// TestWays: over a good link and a bad one each way shows the client about what the server has.
func TestWays(t *testing.T) {
	links := map[string]session.Link{
		"good": {},
		"bad":  {RTT: 100 * time.Millisecond, Jitter: 33 * time.Millisecond, Loss: 0.05, Seed: 3},
	}
	for k, o := range ways {
		for name, l := range links {
			t.Run(k.String()+" "+name, func(t *testing.T) {
				s, err := session.New(small(k, o, l))
				if err != nil {
					t.Fatal(err)
				}
				play(t, s, 7, 120)
				s.Meter.Reset()
				play(t, s, 8, 480)
				m := &s.Meter
				t.Logf("%.0f kbit/s, error mean %.4f p99 %.4f max %.4f m, %.2f p99 %.2f°, %d pops, delay %v, wait %d, refused %d %v", m.Kbits(),
					m.Position.Mean(), m.Position.Quantile(0.99), m.Position.Max, m.Turn.Mean(), m.Turn.Quantile(0.99), m.Pops, m.MeanDelay(), m.Wait, m.Refused, m.Trouble)
				if m.Refused != 0 || m.Kbits() < 1 || m.Position.Count < 500 {
					t.Errorf("refused %d: %v", m.Refused, m.Trouble)
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

// TestRepeats: a session is a function of its Config and the inputs.
func TestRepeats(t *testing.T) {
	run := func() (*session.Session, []game.Seen) {
		s, err := session.New(small(way.Snapshots, way.Options{Rate: 30, Budget: 64_000}, session.Link{RTT: 50 * time.Millisecond, Loss: 0.1, Seed: 1}))
		if err != nil {
			t.Fatal(err)
		}
		play(t, s, 2, 300)
		return s, s.Drawn
	}
	a, drawn := run()
	b, again := run()
	for i := range drawn {
		if drawn[i] != again[i] {
			t.Fatalf("cube %d is drawn at %v and %v", i, drawn[i], again[i])
		}
	}
	if a.Meter.Bytes != b.Meter.Bytes || a.Meter.Pops != b.Meter.Pops {
		t.Errorf("%d bytes and %d, %d pops and %d", a.Meter.Bytes, b.Meter.Bytes, a.Meter.Pops, b.Meter.Pops)
	}
}

// TestBudget: what leaves stays within the budget, also after that was changed, and so do changes of way and link.
func TestBudget(t *testing.T) {
	for k, o := range ways {
		o.Budget = 128_000
		s, err := session.New(small(k, o, session.Link{RTT: 40 * time.Millisecond, Seed: 2}))
		if err != nil {
			t.Fatal(err)
		}
		play(t, s, 2, 60)
		for _, bits := range []int{64_000, 256_000, 32_000} {
			s.SetBudget(bits)
			play(t, s, 3, 60) // what was saved up, or owed
			s.Meter.Reset()
			play(t, s, 4, 240)
			if got := s.Meter.Kbits() * 1000; got > 1.1*float64(bits) || got == 0 {
				t.Errorf("%v: %.0f bits a second of %d", k, got, bits)
			}
		}
	}
}

// TestChange: way and link change while the world goes on, and the client sees the new one's before long.
func TestChange(t *testing.T) {
	s, err := session.New(small(way.Full, ways[way.Full], session.Link{Seed: 4}))
	if err != nil {
		t.Fatal(err)
	}
	play(t, s, 1, 60)
	for _, k := range []way.Kind{way.Snapshots, way.State, way.Full, way.State, way.Snapshots} {
		if err := s.Use(k, ways[k]); err != nil {
			t.Fatal(err)
		}
		if err := s.SetLink(session.Link{RTT: 60 * time.Millisecond, Loss: 0.02}); err != nil {
			t.Fatal(err)
		}
		before := s.At
		play(t, s, 5, 90)
		if s.At < before+time.Second/2 || s.Meter.Refused != 0 {
			t.Errorf("%v: shown %v, was %v; refused %d", k, s.At, before, s.Meter.Refused)
		}
	}
	if err := s.SetLink(session.Link{Loss: 2}); err == nil {
		t.Error("no error")
	}
	if err := s.Use(way.Full, way.Options{Rate: 7}); err == nil {
		t.Error("no error")
	}
}
