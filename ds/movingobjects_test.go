package ds_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type movingCar struct {
	Position schema.Vec3 `uplink:"resolution=0.05,min=-500,max=500" interpolate:"position"`
}

// TestMovingObjects checks that players see each of a few cars that drive through the cells of a
// grid in every snapshot and every frame, over links that lose packets.
func TestMovingObjects(t *testing.T) {
	for name, c := range map[string]struct {
		link   simnet.Config
		inBoth bool // a car is in the old and the new cell for half a second
	}{
		"loss":                 {link: simnet.Config{Delay: 60 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.05}},
		"loss, two cells":      {link: simnet.Config{Delay: 60 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.05}, inBoth: true},
		"bursts of heavy loss": {link: simnet.Config{Delay: 60 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.2, Burst: 3}},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { playMovingObjects(t, c.link, c.inBoth) }) })
	}
}

func playMovingObjects(t *testing.T, link simnet.Config, inBoth bool) {
	const (
		cars, players = 16, 4
		tickHz        = 60
	)
	link.Seed = 3
	network, err := simnet.NewNetwork(link, link)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	grid, err := area.NewGrid(1, -500, -500, 50, 20, 20)
	if err != nil {
		t.Fatal(err)
	}
	sees := grid.Near(nil, 0, 0, 300)
	var world *ds.World[movingCar]
	srv, err := ds.Listen("127.0.0.1:7777", ds.Config{Network: network, Poll: true, TickHz: tickHz, Joined: func(p *ds.Player) {
		s, err := world.Offer(p)
		if err != nil {
			t.Error(err)
			return
		}
		s.See(sees...)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if world, err = ds.NewWorld(srv, "cars", ds.WorldConfig[movingCar]{TickHz: tickHz, SendHz: tickHz / 2, Areas: true}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(ctx) }()
	go func() {
		var cells, old [cars]area.ID
		var since [cars]uint64
		for tick := uint64(1); ctx.Err() == nil; tick++ {
			srv.Poll()
			err := world.Begin(tick)
			for i := range cars {
				angle := float64(i) + float64(tick)/tickHz*0.2 // 20 m/s on a circle of 100 m
				car := movingCar{schema.Vec3{X: 100*math.Cos(angle) + float64(i), Y: 100 * math.Sin(angle)}}
				if in := grid.Stay(max(cells[i], 1), car.Position.X, car.Position.Y, 5); in != cells[i] {
					old[i], cells[i], since[i] = cells[i], in, tick
				}
				in := []area.ID{cells[i], old[i]}
				if !inBoth || old[i] == 0 || tick >= since[i]+tickHz/2 {
					in = in[:1]
				}
				if err == nil {
					err = world.Put(uint16(i), 1, &car, in...)
				}
			}
			world.Commit()
			if err == nil && tick%2 == 0 {
				_, err = world.Send()
			}
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second / tickHz)
		}
	}()
	done := make(chan struct{}, players)
	for range players {
		go func() {
			defer func() { done <- struct{}{} }()
			var snapshots atomic.Int64
			var frames int
			conn, err := client.Dial(ctx, "127.0.0.1:7777", client.Config{Network: network})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			complete := false
			view, err := client.SubscribeSnapshots(ctx, conn, "cars", client.SnapshotConfig[movingCar]{
				Interpolate: &interpolate.Config{Delay: 130 * time.Millisecond},
				Handle: func(s *client.Snapshot[movingCar]) {
					if complete = complete || len(s.IDs) == cars; complete && !s.Late {
						if snapshots.Add(1); len(s.IDs) < cars {
							t.Errorf("tick %d: %d of %d cars", s.Tick, len(s.IDs), cars)
						}
					}
				},
			})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(2 * time.Second)
			var shown interpolate.Sample[movingCar]
			for range 40 * tickHz {
				if view.Sample(time.Now(), &shown) {
					if frames++; len(shown.IDs) < cars {
						t.Errorf("a frame shows %d of %d cars", len(shown.IDs), cars)
					}
				}
				time.Sleep(time.Second / tickHz)
			}
			if snapshots.Load() < 600 || frames < 30*tickHz {
				t.Errorf("%d snapshots, %d frames", snapshots.Load(), frames)
			}
		}()
	}
	for range players {
		<-done
	}
	cancel()
	_ = srv.Close()
	time.Sleep(5 * time.Second)
}
