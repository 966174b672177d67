package client_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type ball struct {
	At schema.Vec3 `uplink:"resolution=0.5"`
}

// ticksGame is a server that ticks at 60 Hz from its start on, and a client that calls as often.
type ticksGame struct {
	t     *testing.T
	srv   *uplinktest.Server
	conn  *client.Conn
	world *ds.World[ball]
	view  *client.SnapshotView[ball]
	move  *client.Stream[ball]
	start time.Time
	tick  uint64
	used  map[uint64]uint64 // tick by sequence number of the call
}

func newTicksGame(t *testing.T, link simnet.Config) *ticksGame {
	g := &ticksGame{t: t, used: map[uint64]uint64{}}
	down := link
	down.Seed++
	network := uplinktest.NewNetwork(t, link, down)
	cfg := ds.Config{Poll: true, TickHz: 60, Joined: func(p *ds.Player) {
		_, err := g.world.Offer(p)
		uplinktest.Must(t, err)
	}}
	g.srv = uplinktest.Serve(t, network, cfg, func(s *ds.Server) error {
		return ds.Handle(s, "Move", func(_ *ds.Player, f ds.Frame[ball]) { g.used[f.Seq] = g.tick }, ds.JitterBuffer{})
	})
	var err error
	g.world, err = ds.NewWorld(g.srv.Server, "balls", ds.WorldConfig[ball]{})
	uplinktest.Must(t, err)
	g.conn = uplinktest.Dial(t, network, client.Config{})
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	g.start = time.Now()
	go g.serve(stop)
	g.view, err = client.SubscribeSnapshots(t.Context(), g.conn, "balls", client.SnapshotConfig[ball]{})
	uplinktest.Must(t, err)
	g.move, err = client.Bind[ball](t.Context(), g.conn, "Move", client.BindConfig{})
	uplinktest.Must(t, err)
	return g
}

func (g *ticksGame) serve(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Until(g.start.Add(time.Duration(float64(g.tick+1) * float64(time.Second) / 60)))):
		}
		g.tick++
		g.srv.Poll()
		uplinktest.Must(g.t, g.world.Begin(g.tick))
		uplinktest.Must(g.t, g.world.Put(1, 0, &ball{}))
		g.world.Commit()
		_, err := g.world.Send()
		uplinktest.Must(g.t, err)
	}
}

// TestTicks compares a client's clock with the server's, and the tick that it expects for each call
// with that in which the jitter buffer released it.
func TestTicks(t *testing.T) {
	for _, rtt := range []time.Duration{20 * ms, 100 * ms, 200 * ms} {
		t.Run(fmt.Sprint(rtt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newTicksGame(t, simnet.Config{Delay: rtt / 2, Jitter: 20 * ms, Loss: 0.05, Seed: 7})
				var server, input []float64
				expected, last := map[uint64]float64{}, 0.0
				for begun := time.Now(); time.Since(begun) < 60*time.Second; {
					now := time.Now()
					ticks, ok := g.view.Ticks(now)
					seq, err := g.move.Send(&ball{})
					uplinktest.Must(t, err)
					if ok && now.Sub(begun) > 10*time.Second {
						if ticks.Server < last || ticks.Hz != 60 {
							t.Fatalf("tick %v after %v, %v Hz", ticks.Server, last, ticks.Hz)
						}
						last = ticks.Server
						server = append(server, ticks.Server-now.Sub(g.start).Seconds()*60)
						expected[seq] = ticks.Input(g.move.Pace())
					}
					pace := g.move.Pace()
					time.Sleep(pace.Interval(time.Second / 60))
				}
				settle(time.Second)
				for seq, tick := range expected {
					if at, used := g.used[seq]; used {
						input = append(input, tick-float64(at))
					}
				}
				s, i := quantiles(server), quantiles(input)
				t.Logf("RTT %v: server's tick off by %.2f (5 to 95 %%: %.2f to %.2f), input's by %.2f (%.2f to %.2f), %d of %d calls used",
					rtt, s[1], s[0], s[2], i[1], i[0], i[2], len(input), len(expected))
				if math.Abs(s[1]) > 0.5 || s[2]-s[0] > 1 || math.Abs(i[1]) > 1 || len(input) < len(expected)*97/100 {
					t.Error("want half a tick at most, one for inputs, and 97 % of the calls in time")
				}
			})
		})
	}
}

// quantiles returns the 5 %, 50 % and 95 % quantiles.
func quantiles(v []float64) (q [3]float64) {
	slices.Sort(v)
	for i, share := range []float64{0.05, 0.5, 0.95} {
		q[i] = v[int(share*float64(len(v)))]
	}
	return q
}
