package ends_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/ends"
	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/script"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestWays plays one way after the other through a real server and client, in virtual time: what is drawn is near to the
// server's world, within the budget, and goes on when the way changes.
func TestWays(t *testing.T) {
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
		var e *ends.Ends
		srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Poll: true, Joined: func(p *ds.Player) { must(e.Joined(p)) }})
		must(err)
		e, err = ends.New(srv)
		must(err)
		served := make(chan error)
		go func() { served <- srv.Serve(context.Background()) }()
		conn, err := client.Dial(t.Context(), "127.0.0.1:7777", client.Config{Network: network})
		must(err)
		e.Connected(conn)

		p := world.Default()
		p.Side = 8
		options := way.Options{Rate: 60, Budget: 256_000, Jitter: 16 * time.Millisecond, Loss: 0.02}
		s, err := session.New(session.Config{World: p, Way: way.Snapshots, Options: options, New: e.Make})
		must(err)
		play := script.New(1, script.Reach)
		run := func(ticks int) {
			for range ticks {
				srv.Poll()
				must(s.Tick(play.Next(s.Bodies()[0].Position)))
				time.Sleep(game.Tick)
				synctest.Wait()
			}
		}
		for i, k := range []way.Kind{way.Snapshots, way.State, way.Full, way.State, way.State, way.Snapshots} {
			if i > 0 {
				must(s.Use(k, options))
			}
			run(3 * game.Rate)
			s.Meter.Reset()
			run(4 * game.Rate)
			m := &s.Meter
			t.Logf("%v: %.0f kbit/s, off by %.3f m, %v behind, %d updates", k, m.Kbits(), m.Position.Mean(), m.MeanDelay(), m.Updates)
			if !s.Shown || m.Position.Mean() > 0.2 || m.Updates == 0 || m.Refused > 0 || m.MeanDelay() > time.Second/2 || m.MeanDelay() < 50*time.Millisecond {
				t.Errorf("%v: off by %v m in the mean, %v behind, %d updates, %d refused: %v", k, m.Position.Mean(), m.MeanDelay(), m.Updates, m.Refused, m.Trouble)
			}
			if k != way.Full && (m.Kbits() > 260 || m.Kbits() < 1) {
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
