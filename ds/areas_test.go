package ds_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// ownerObject is what only its owner knows.
type ownerObject struct{ Coins uint16 }

// TestAreas replicates a world of which each player sees the cells around it and its own
// ownerObject. It checks what arrives, and that players with less to see receive less.
func TestAreas(t *testing.T) {
	for _, link := range []simnet.Config{{}, {Loss: 0.1, Jitter: 20 * ms}} {
		bubble(t, fmt.Sprintf("%+v", link), func(t *testing.T) {
			const players, movers = 3, 200
			ticks := uint64(400 / thin(4))
			network := linkedBy(t, 60*ms, link)
			joined := make(chan *ds.Player, players)
			var world *ds.World[mover]
			var purses *ds.ObjectType[ownerObject]
			srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(s *ds.Server) (err error) {
				if world, err = ds.NewWorld(s, "town", ds.WorldConfig[mover]{Areas: true}); err == nil {
					purses, err = ds.AddType[ownerObject](world, "ownerObject")
				}
				return err
			})
			grid, err := area.NewGrid(1, 0, 0, 30, 3, 3)
			uplinktest.Must(t, err)
			const own = 1000 // the first of the areas that one player sees

			var streams []*ds.SnapshotStream
			var views []*client.SnapshotView[mover]
			var kept []*client.ObjectType[ownerObject]
			shown := make([]int, players)
			var objects, stale atomic.Int64
			for i := range players {
				conn := uplinktest.Dial(t, network, client.Config{})
				s, err := world.Offer(<-joined)
				uplinktest.Must(t, err)
				streams = append(streams, s)
				p, err := client.NewObjectType("ownerObject", client.SnapshotConfig[ownerObject]{})
				uplinktest.Must(t, err)
				kept = append(kept, p)
				v, err := client.SubscribeSnapshots(t.Context(), conn, "town", client.SnapshotConfig[mover]{
					Types: []client.AnyObjectType{p}, Interpolate: &interpolate.Config{Adaptive: true},
					Handle: func(s *client.Snapshot[mover]) {
						shown[i] = len(s.IDs)
						for k, id := range s.IDs {
							n, _ := client.SplitID(id)
							objects.Add(1)
							got, want := s.Objects[k].Position, moverAt(int(n), s.Tick, never).Position
							if math.Hypot(got.X-want.X, got.Y-want.Y) > 0.02 {
								stale.Add(1)
							}
						}
					},
				})
				uplinktest.Must(t, err)
				views = append(views, v)
			}
			for tick := uint64(1); tick <= ticks; tick++ {
				uplinktest.Must(t, world.Begin(tick))
				for i := range movers {
					m := moverAt(i, tick, never)
					uplinktest.Must(t, world.Put(uint16(i), 0, &m, grid.At(m.Position.X, m.Position.Y)))
				}
				for i := range players {
					uplinktest.Must(t, purses.Put(uint16(i), 0, &ownerObject{uint16(tick) + uint16(1000*i)}, own+area.ID(i)))
					streams[i].See(append(grid.Near(nil, 15, 15, float64(30*i)), own+area.ID(i))...)
				}
				world.Commit()
				_, err := world.Send()
				uplinktest.Must(t, err)
				settle(time.Second / 60)
			}
			settle(time.Second)
			for i, v := range views {
				var movers client.Snapshot[mover]
				var own client.Snapshot[ownerObject]
				if !v.Latest(&movers) || !kept[i].Latest(&own) {
					t.Fatalf("player %d received nothing: %+v", i, v.Stats())
				}
				if own.Tick != movers.Tick || len(own.Objects) != 1 || own.IDs[0] != uint32(i)<<8 || int(own.Objects[0].Coins) != int(own.Tick)+1000*i {
					t.Errorf("player %d knows of purses %v %+v at tick %d", i, own.IDs, own.Objects, own.Tick)
				}
				if st := v.Stats(); st.Malformed+st.Desync != 0 || link.Loss == 0 && (st.BaselineMissing != 0 || movers.Tick != ticks) {
					t.Errorf("player %d: %+v", i, st)
				}
				if i > 0 && (shown[i] <= shown[i-1] || v.Stats().Bytes <= views[i-1].Stats().Bytes) {
					t.Errorf("player %d was shown %d objects in %d bytes, player %d %d in %d", i, shown[i], v.Stats().Bytes, i-1, shown[i-1], views[i-1].Stats().Bytes)
				}
				t.Logf("player %d: %d objects, %d bytes", i, shown[i], v.Stats().Bytes)
			}
			if n := objects.Load(); stale.Load() > n/50 {
				t.Errorf("%d of %d objects were not up to date", stale.Load(), n)
			}
			if st := srv.Stats().Replication[0]; st.InvalidAcks != 0 || st.Unsent != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestAreaGoroutines uses a world with areas from several goroutines, as a game may: one makes the
// ticks, one for each player offers the world, changes what the player sees and stops the stream,
// and one for each client joins, reads what it is shown and leaves. The race detector checks them.
func TestAreaGoroutines(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const players, rounds, movers, frame = 3, 3, 60, time.Second / 60
		network := linkedBy(t, 40*ms, simnet.Config{Loss: 0.02, Jitter: 5 * ms})
		var world *ds.World[mover]
		var purses *ds.ObjectType[ownerObject]
		var all sync.WaitGroup
		srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			all.Go(func() { lookAround(t, world, p) })
		}}, func(s *ds.Server) (err error) {
			if world, err = ds.NewWorld(s, "town", ds.WorldConfig[mover]{Areas: true}); err == nil {
				purses, err = ds.AddType[ownerObject](world, "ownerObject")
			}
			return err
		})
		var clients sync.WaitGroup
		for range players {
			clients.Go(func() {
				for range rounds {
					if err := lookOn(t.Context(), network); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		all.Go(func() {
			for tick := uint64(1); ; tick++ {
				err := world.Begin(tick)
				for i := range movers {
					m := moverAt(i, tick, never)
					err = errors.Join(err, world.Put(uint16(i), 0, &m, area.ID(i%4+int(tick)/30%2)))
				}
				err = errors.Join(err, purses.Put(7, 0, &ownerObject{uint16(tick)}, area.ID(tick/40%3)))
				world.Commit()
				_, sent := world.Send()
				if err = errors.Join(err, sent); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				case <-time.After(frame):
				}
			}
		})
		clients.Wait()
		close(done)
		all.Wait()
		if st := srv.Stats().Replication[0]; st.InvalidAcks != 0 || st.Acked == 0 {
			t.Errorf("%+v", st)
		}
	})
}

// lookAround offers a world to a player, several times, and changes what the player sees.
func lookAround(t *testing.T, world *ds.World[mover], p *ds.Player) {
	for range 4 {
		s, err := world.Offer(p)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range 40 {
			s.See(area.ID(i/5%5), area.ID(i/7%5))
			if st := s.Stats(); st.Players > 1 {
				t.Errorf("%+v", st)
			}
			time.Sleep(time.Second / 60)
		}
		s.Stop()
	}
}

// lookOn joins, waits until it is shown objects of both types, and leaves.
func lookOn(ctx context.Context, network transport.Network) (err error) {
	conn, err := client.Dial(ctx, uplinktest.Addr, client.Config{Network: network})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	purses, err := client.NewObjectType("ownerObject", client.SnapshotConfig[ownerObject]{})
	if err != nil {
		return err
	}
	v, err := client.SubscribeSnapshots(ctx, conn, "town", client.SnapshotConfig[mover]{
		Types: []client.AnyObjectType{purses}, Interpolate: &interpolate.Config{},
	})
	if err != nil {
		return err
	}
	var latest client.Snapshot[mover]
	var own client.Snapshot[ownerObject]
	var shown interpolate.Sample[mover]
	for range 120 {
		v.Latest(&latest)
		v.Sample(time.Now(), &shown)
		purses.Latest(&own)
		time.Sleep(time.Second / 60)
	}
	if st := v.Stats(); st.Messages == 0 || st.Malformed+st.Desync != 0 || latest.Tick == 0 || own.Tick == 0 {
		return fmt.Errorf("tick %d of movers, %d of purses: %+v", latest.Tick, own.Tick, st)
	}
	return nil
}

// TestAreaErrors checks the errors of worlds with areas.
func TestAreaErrors(t *testing.T) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	defer srv.Close()
	plain, err := ds.NewWorld(srv, "plain", ds.WorldConfig[mover]{})
	uplinktest.Must(t, err)
	town, err := ds.NewWorld(srv, "town", ds.WorldConfig[mover]{Areas: true})
	uplinktest.Must(t, err)
	_, both := ds.NewWorld(srv, "both", ds.WorldConfig[mover]{Areas: true, Initial: initial(3)})
	_, little := ds.NewWorld(srv, "little", ds.WorldConfig[mover]{Areas: true, EnterBytes: 10})
	_, noAreas := ds.AddType[ownerObject](plain, "ownerObject")
	_, err = ds.AddType[ownerObject](town, "ownerObject")
	uplinktest.Must(t, err)
	_, twice := ds.AddType[ownerObject](town, "ownerObject")
	m := mover{Rotation: schema.Quat{W: 1}}
	uplinktest.Must(t, plain.Begin(1))
	uplinktest.Must(t, town.Begin(1))
	_, late := ds.AddType[ownerObject](town, "keys")
	uplinktest.Must(t, town.Put(7, 0, &m, 1))
	wantErrors(t, "", map[string]error{
		"Initial and Areas": both, "EnterBytes is 10": little, "set WorldConfig.Areas": plain.Put(1, 0, &m, 1),
		"type ownerObject: set WorldConfig.Areas": noAreas, "there is a type ownerObject": twice, "before the first tick": late,
		"object 7: object 7 after object 7": town.Put(7, 0, &m, 1), "17 areas": town.Put(8, 0, &m, make([]area.ID, 17)...),
	})
}
