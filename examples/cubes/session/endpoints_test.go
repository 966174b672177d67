package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

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
		for i, k := range []session.Mode{session.ModeSnapshots, session.ModeState, session.ModeFull, session.ModeState, session.ModeState, session.ModeSnapshots} {
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
