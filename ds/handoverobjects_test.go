package ds_test

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// carServers is two servers with the same world of cars, which is too large for the objects to
// enter a view at once, and a player who is handed over from one to the other.
type carServers struct {
	cars       int
	link       simnet.Config
	areas      bool
	sendHz     float64
	enterBytes int
	late       bool // each server offers the world to a player who has joined, not before
}

// carparkRate is the number of ticks and of frames per second.
const carparkRate = 30

// visitor is the player of a carServers.
type visitor struct {
	cars      int
	players   chan *ds.Player
	view      *client.SnapshotView[movingCar]
	handovers atomic.Int64
	partial   atomic.Int64 // events

	complete  atomic.Bool // a snapshot was complete
	snapshots atomic.Int64
	vanished  atomic.Int64 // objects that were missing in a later one
	newest    client.Snapshot[movingCar]
	shown     interpolate.Sample[movingCar]
	frames    int
	missing   int // likewise, in newest of each frame
	unshown   int // and in shown
}

// TestHandoverObjects hands a player over between servers with the same world. Each snapshot and
// each frame shows all objects, also if packets are lost, if snapshots are rare, and if the world
// is offered after the switch only.
func TestHandoverObjects(t *testing.T) {
	links := map[string]simnet.Config{
		"no loss": {}, "10 % loss": {Loss: 0.1}, "20 % loss": {Loss: 0.2}, "20 % loss in bursts": {Loss: 0.2, Burst: 3},
	}
	i, step := 0, thin(5)
	for _, areas := range []bool{true, false} {
		for _, sendHz := range []float64{30, 2} {
			for _, late := range []bool{false, true} {
				for _, name := range slices.Sorted(maps.Keys(links)) {
					if i++; i%step != 0 {
						continue
					}
					cars, enterBytes := 1200, 0
					if sendHz < 10 || testing.Short() { // rare messages are larger, and few of those with many fragments arrive
						cars, enterBytes = 400, 200
					}
					c := carServers{cars, links[name], areas, sendHz, enterBytes, late}
					bubble(t, fmt.Sprintf("areas %v, %v Hz, late %v, %s", areas, sendHz, late, name), c.keepsShowing)
				}
			}
		}
	}
}

func (c carServers) keepsShowing(t *testing.T) {
	v := c.visit(t)
	for range 3 {
		v.handOver(t)
		began, at := v.snapshots.Load(), time.Now()
		v.play(10*time.Second, func() bool { return v.snapshots.Load() > began+2 })
		t.Logf("shown after %v", time.Since(at))
		v.play(2*time.Second, nil)
	}
	t.Logf("%d snapshots, %d frames", v.snapshots.Load(), v.frames)
	if v.vanished.Load()+int64(v.missing+v.unshown) > 0 {
		t.Errorf("objects vanished: %d in %d snapshots; in %d frames %d from Latest, %d from Sample",
			v.vanished.Load(), v.snapshots.Load(), v.frames, v.missing, v.unshown)
	}
	if v.partial.Load() > 0 {
		t.Errorf("%d events tell of a view that was not complete", v.partial.Load())
	}
}

// TestPartialView hands a player over to a server on which too few objects may enter a view per
// message. The client waits for 100 messages, switches, reports that objects are missing, and shows
// them when they arrive.
func TestPartialView(t *testing.T) {
	for _, late := range []bool{false, true}[:2/thin(2)] {
		bubble(t, fmt.Sprintf("late %v", late), func(t *testing.T) {
			v := carServers{cars: 1200, areas: true, sendHz: 30, enterBytes: 64, late: late}.visit(t)
			began := time.Now()
			v.handOver(t)
			v.play(5*time.Second, func() bool { return v.partial.Load() > 0 })
			if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
				t.Errorf("the view is shown after %v", took)
			}
			if v.partial.Load() != 1 || v.view.Stats().Partial != 1 || v.vanished.Load() == 0 {
				t.Errorf("%d events, %d in Stats, %d objects are missing", v.partial.Load(), v.view.Stats().Partial, v.vanished.Load())
			}
			if testing.Short() {
				return
			}
			v.play(20*time.Second, func() bool { return len(v.newest.IDs) == v.cars })
			if len(v.newest.IDs) != v.cars {
				t.Errorf("%d objects are shown", len(v.newest.IDs))
			}
		})
	}
}

// visit starts the servers and a client, and waits until the client shows all objects.
func (c carServers) visit(t *testing.T) *visitor {
	c.link.Seed, c.link.Jitter = 3, 5*ms
	network := linkedBy(t, 80*ms, c.link)
	grid, err := area.NewGrid(1, -500, -500, 50, 20, 20)
	uplinktest.Must(t, err)
	sees := grid.Near(nil, 0, 0, 1000)
	v := &visitor{cars: c.cars, players: make(chan *ds.Player, 4)}
	start := time.Now()
	for i := range 2 {
		var world *ds.World[movingCar]
		offer := func(p *ds.Player) {
			s, err := world.Offer(p)
			uplinktest.Must(t, err)
			s.See(sees...)
		}
		cfg := ds.Config{Network: network, Poll: true, TickHz: carparkRate, Joined: func(p *ds.Player) {
			if c.late {
				offer(p)
			}
			v.players <- p
		}}
		if !c.late {
			cfg.Hooks.Connected = offer
		}
		srv, err := ds.Listen(fmt.Sprint("127.0.0.1:", 7777+i), cfg)
		uplinktest.Must(t, err)
		t.Cleanup(func() { _ = srv.Close() })
		world, err = ds.NewWorld(srv, "cars", ds.WorldConfig[movingCar]{TickHz: carparkRate, SendHz: c.sendHz, Areas: c.areas, EnterBytes: c.enterBytes})
		uplinktest.Must(t, err)
		go func() { _ = srv.Serve(t.Context()) }()
		polling(t, time.Second/carparkRate, func() {
			srv.Poll()
			tick := uint64(time.Since(start).Seconds()*carparkRate + 0.5)
			uplinktest.Must(t, world.Begin(tick))
			for id := range c.cars {
				radius := 20 + 0.3*float64(id)
				angle := float64(id) + float64(tick)/carparkRate*5/radius
				car := movingCar{schema.Vec3{X: radius * math.Cos(angle), Y: radius * math.Sin(angle)}}
				var in []area.ID
				if c.areas {
					in = append(in, grid.At(car.Position.X, car.Position.Y))
				}
				uplinktest.Must(t, world.Put(uint16(id), 1, &car, in...))
			}
			_, err := world.Send()
			uplinktest.Must(t, err)
		})
	}
	conn := uplinktest.Dial(t, network, client.Config{OnEvent: func(e client.Event) {
		switch {
		case e.Handover == client.HandoverCompleted:
			v.handovers.Add(1)
		case e.Partial:
			v.partial.Add(1)
		}
	}})
	v.view, err = client.SubscribeSnapshots(t.Context(), conn, "cars", client.SnapshotConfig[movingCar]{
		Interpolate: &interpolate.Config{Delay: time.Duration(1.5 * float64(time.Second) / c.sendHz), Gap: 10 * time.Second},
		Handle: func(s *client.Snapshot[movingCar]) {
			if len(s.IDs) == v.cars {
				v.complete.Store(true)
			}
			if v.complete.Load() && !s.Late {
				v.snapshots.Add(1)
				v.vanished.Add(int64(v.cars - len(s.IDs)))
			}
		},
	})
	uplinktest.Must(t, err)
	v.play(time.Minute, v.complete.Load)
	if !v.complete.Load() {
		t.Fatal("the first view is not complete")
	}
	v.play(2*time.Second, nil) // until the frames show that
	v.frames, v.missing, v.unshown = 0, 0, 0
	return v
}

// handOver hands the player over, from the server at which it joined last, and waits until the
// client has switched.
func (v *visitor) handOver(t *testing.T) {
	before, began := v.handovers.Load(), time.Now()
	to := netip.MustParseAddrPort(fmt.Sprint("127.0.0.1:", 7778-before%2))
	uplinktest.Must(t, (<-v.players).Handover(ds.Target{Addrs: []netip.AddrPort{to}}, ds.HandoverConfig{}))
	v.play(25*time.Second, func() bool { return v.handovers.Load() > before })
	if v.handovers.Load() == before {
		t.Fatal("no handover has completed")
	}
	t.Logf("switched after %v", time.Since(began))
}

// play shows frames until a condition holds, or for a time.
func (v *visitor) play(lasts time.Duration, until func() bool) {
	for end := time.Now().Add(lasts); time.Now().Before(end) && (until == nil || !until()); settle(time.Second / carparkRate) {
		if !v.complete.Load() {
			continue
		}
		v.frames++
		if !v.view.Latest(&v.newest) {
			v.newest.IDs = nil
		}
		v.missing += v.cars - len(v.newest.IDs)
		if v.view.Sample(time.Now(), &v.shown) {
			v.unshown += v.cars - len(v.shown.IDs)
		}
	}
}
