package ds_test

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/predict"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestLoopHandover hands a player over to a server that has its boat elsewhere. The client's loop
// continues there without a correction, a missed tick, or an input of the first server's session.
func TestLoopHandover(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := linkedBy(t, 80*ms, simnet.Config{Jitter: 3 * ms, Seed: 1})
		players := make(chan *ds.Player, 2)
		var boats [2]boat
		for i := range boats {
			boats[i].X = int32(i) * 1_000_000
			var world *ds.World[boat]
			srv, err := ds.Listen(fmt.Sprint("127.0.0.1:", 7777+i), ds.Config{
				Network: network, Poll: true, TickHz: 60,
				Hooks: ds.Hooks{
					Connected: func(p *ds.Player) {
						_, err := world.Offer(p)
						uplinktest.Must(t, err)
					},
				},
				Joined: func(p *ds.Player) { players <- p },
			})
			uplinktest.Must(t, err)
			t.Cleanup(func() { _ = srv.Close() })
			uplinktest.Must(t, ds.Handle(srv, "Steer", func(_ *ds.Player, f ds.Frame[steer]) { boats[i].step(&f.Value) },
				ds.JitterBuffer{Repeat: 3}, ds.ForPrediction{}))
			world, err = ds.NewWorld(srv, "sea", ds.WorldConfig[boat]{TickHz: 60})
			uplinktest.Must(t, err)
			go func() { _ = srv.Serve(t.Context()) }()
			tick := uint64(0)
			polling(t, time.Second/60, func() {
				srv.Poll()
				tick++
				uplinktest.Must(t, world.Begin(tick))
				uplinktest.Must(t, world.Put(1, 0, &boats[i]))
				_, err := world.Send()
				uplinktest.Must(t, err)
			})
		}
		conn := uplinktest.Dial(t, network, client.Config{})
		move, err := client.Bind[steer](t.Context(), conn, "Steer", client.BindConfig{RateHz: 60})
		uplinktest.Must(t, err)
		view, err := client.SubscribeSnapshots(t.Context(), conn, "sea", client.SnapshotConfig[boat]{})
		uplinktest.Must(t, err)
		var firsts []time.Time
		loop, err := client.NewLoop(move, boat{}, client.LoopConfig[boat, steer]{
			Input: func(at time.Time, seq uint64) steer {
				if seq == 0 {
					firsts = append(firsts, at)
				}
				return steer{int8(at.UnixMilli()/300%15) - 7}
			},
			Predict: predict.Config[boat, steer]{Step: (*boat).step, Distance: func(a, b *boat) float64 { return math.Abs(float64(a.X - b.X)) }},
		})
		uplinktest.Must(t, err)
		var s client.Snapshot[boat]
		play := func(lasts time.Duration) {
			for end := time.Now().Add(lasts); time.Now().Before(end); {
				if view.Latest(&s) {
					uplinktest.Must(t, loop.Correct(s.Tick, s.IDs[0], s.Processed, &s.Objects[0]))
				}
				next, err := loop.Advance(time.Now())
				uplinktest.Must(t, err)
				settle(time.Until(next))
			}
		}
		play(5 * time.Second)
		uplinktest.Must(t, (<-players).Handover(ds.Target{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7778")}}, ds.HandoverConfig{}))
		before := loop.Stats()
		play(5 * time.Second)
		st := loop.Stats()
		t.Logf("%+v, %d sessions, boat at %d", st, len(firsts), loop.State().X)
		if len(firsts) != 2 || loop.State().X < 900_000 || st.Inputs-before.Inputs < 290 || st.Unsent+st.Skipped != 0 || st.Dropped != 0 || loop.Waiting() > 15 {
			t.Errorf("%+v, %d sessions, boat at %d, %d inputs wait", st, len(firsts), loop.State().X, loop.Waiting())
		}
		if st.Largest > 10_000 {
			t.Errorf("the handover is a correction: %+v", st)
		}
	})
}
