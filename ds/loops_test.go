package ds_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/predict"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// gameLoop is what a game does with its world in each tick.
type gameLoop struct {
	name   string
	sendHz float64
	// commits and sends report whether the loop makes and sends a tick.
	commits, sends func(tick uint64) bool
	// alone, if set, reports whether the loop sends a tick to a player alone, instead of to all.
	alone func(player int, tick uint64) bool
}

// loopResult is what the players of a loop have received.
type loopResult struct {
	sent      []uint64 // the ticks that were sent
	snapshots []uint64 // by player
	bytes     []uint64
}

// playLoop plays a loop of 60 ticks a second for some time.
func playLoop(t *testing.T, l gameLoop, areas bool, link simnet.Config, players, ticks int) (r loopResult) {
	const objects = 40
	network := linkedBy(t, 60*ms, link)
	joined := make(chan *ds.Player, players)
	var world *ds.World[mover]
	serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(s *ds.Server) (err error) {
		world, err = ds.NewWorld(s, "movers", ds.WorldConfig[mover]{SendHz: l.sendHz, Areas: areas})
		return err
	})
	var streams []*ds.SnapshotStream
	var views []*client.SnapshotView[mover]
	for range players {
		conn := uplinktest.Dial(t, network, client.Config{})
		s, err := world.Offer(<-joined)
		uplinktest.Must(t, err)
		s.See(1, 2, 3)
		v, err := client.SubscribeSnapshots(t.Context(), conn, "movers", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
		streams, views = append(streams, s), append(views, v)
	}
	settle(time.Second)
	for tick := uint64(1); tick <= uint64(ticks); tick++ {
		if l.commits(tick) {
			uplinktest.Must(t, world.Begin(tick))
			for i := range objects {
				m := moverAt(i, tick, never)
				var in []area.ID
				if areas {
					in = []area.ID{1 + area.ID(i%3)}
				}
				uplinktest.Must(t, world.Put(uint16(i), 0, &m, in...))
			}
			world.Commit()
		}
		switch {
		case l.alone != nil:
			for i, s := range streams {
				if l.alone(i, tick) {
					uplinktest.Must(t, s.Send())
				}
			}
		case l.sends(tick):
			n, err := world.Send()
			uplinktest.Must(t, err)
			if n > 0 {
				r.sent = append(r.sent, tick)
			}
		}
		settle(time.Second / 60)
	}
	settle(time.Second)
	for _, v := range views {
		st := v.Stats()
		r.snapshots, r.bytes = append(r.snapshots, st.Messages), append(r.bytes, st.Bytes)
	}
	return r
}

func always(uint64) bool { return true }

func each(n uint64) func(uint64) bool { return func(tick uint64) bool { return tick%n == 0 } }

// TestLoops checks that the ticks that a game does not send have no influence: as many snapshots
// arrive, of the same size, as if it only made those that are sent; and that SendHz is the maximum.
func TestLoops(t *testing.T) {
	const ticks, seconds = 600, 10
	rng := rand.New(rand.NewPCG(7, 7))
	random := make([]bool, ticks+1)
	for i := range random {
		random[i] = i > 1 && rng.IntN(3) == 0
	}
	for _, l := range []gameLoop{
		{name: "every 2nd", sendHz: 30, commits: always, sends: each(2)},
		{name: "every 3rd", sendHz: 20, commits: always, sends: each(3)},
		{name: "every 3rd of 60", commits: always, sends: each(3)},
		{name: "every 4th of 60", commits: always, sends: each(4)},
		{name: "every 6th", sendHz: 10, commits: always, sends: each(6)},
		{name: "20 Hz", sendHz: 20, commits: always, sends: always},
		{name: "25 Hz", sendHz: 25, commits: always, sends: always},
		{name: "every 2nd made, 20 Hz", sendHz: 20, commits: each(2), sends: always},
		{name: "at random", sendHz: 20, commits: always, sends: func(tick uint64) bool { return random[tick] }},
	} {
		for _, areas := range []bool{false, true} {
			for _, link := range []simnet.Config{{}, {Loss: 0.05, Jitter: 10 * ms}} {
				if testing.Short() && (link.Loss > 0 || l.sendHz != 20) {
					continue
				}
				bubble(t, fmt.Sprintf("%s/areas=%v/loss=%v", l.name, areas, link.Loss), func(t *testing.T) {
					got := playLoop(t, l, areas, link, 1, ticks)
					made := map[uint64]bool{}
					for _, tick := range got.sent {
						made[tick] = true
					}
					of := func(tick uint64) bool { return made[tick] }
					want := playLoop(t, gameLoop{sendHz: l.sendHz, commits: of, sends: of}, areas, link, 1, ticks)
					t.Logf("%d ticks sent, %d and %d snapshots, %d and %d bytes", len(got.sent), got.snapshots[0], want.snapshots[0], got.bytes[0], want.bytes[0])
					most := l.sendHz * seconds
					if sent := float64(len(got.sent)); most > 0 && sent > most+1 || l.sends(1) && sent < 0.99*most {
						t.Errorf("%v ticks are sent in %v s", sent, seconds)
					}
					lost := 0.0 // the same numbers of datagrams are lost, which are those of other ticks
					if link.Loss > 0 {
						lost = 0.03
					}
					if float64(got.snapshots[0]) < (1-lost)*float64(want.snapshots[0]) || float64(got.bytes[0]) > (1.02+lost)*float64(want.bytes[0]) {
						t.Errorf("%d snapshots of %d bytes, but %d of %d if only ticks that are sent are made", got.snapshots[0], got.bytes[0], want.snapshots[0], want.bytes[0])
					}
				})
			}
		}
	}
}

// TestLoopsOfPlayers checks that all snapshots arrive if a game sends to each player by itself, in
// other ticks than to the others.
func TestLoopsOfPlayers(t *testing.T) {
	const players = 4
	ticks := 600 / thin(3)
	for _, every := range []uint64{2, 3, 4, 6} {
		for _, areas := range []bool{false, true} {
			bubble(t, fmt.Sprintf("every %d/areas=%v", every, areas), func(t *testing.T) {
				got := playLoop(t, gameLoop{sendHz: 60 / float64(every), commits: always, alone: func(player int, tick uint64) bool {
					return tick%every == uint64(player)%every
				}}, areas, simnet.Config{}, players, ticks)
				for i := range players {
					t.Logf("%d snapshots, %d bytes", got.snapshots[i], got.bytes[i])
					if want := uint64(ticks)/every - 2; got.snapshots[i] < want {
						t.Errorf("player %d received %d snapshots, want %d", i, got.snapshots[i], want)
					}
				}
			})
		}
	}
}

// TestLoopHandover hands a player over to a server that has its boat elsewhere, and whose ticks are
// lower. The client's loop continues there without a correction, a missed tick, or an input of the
// first server's session, also if the world is offered after the switch only: until then the view
// shows the first server's boat.
func TestLoopHandover(t *testing.T) {
	for _, late := range []bool{false, true} {
		bubble(t, fmt.Sprintf("late %v", late), func(t *testing.T) { testLoopHandover(t, late) })
	}
}

func testLoopHandover(t *testing.T, late bool) {
	network := linkedBy(t, 80*ms, simnet.Config{Jitter: 3 * ms, Seed: 1})
	players := make(chan *ds.Player, 2)
	var boats [2]boat
	for i := range boats {
		boats[i].X = int32(i) * 1_000_000
		var world *ds.World[boat]
		offer := func(p *ds.Player, now bool) {
			if now {
				_, err := world.Offer(p)
				uplinktest.Must(t, err)
			}
		}
		srv, err := ds.Listen(fmt.Sprint("127.0.0.1:", 7777+i), ds.Config{
			Network: network, Poll: true, TickHz: 60,
			Hooks: ds.Hooks{Connected: func(p *ds.Player) { offer(p, !late) }},
			Joined: func(p *ds.Player) {
				offer(p, late)
				players <- p
			},
		})
		uplinktest.Must(t, err)
		t.Cleanup(func() { _ = srv.Close() })
		uplinktest.Must(t, ds.Handle(srv, "Steer", func(_ *ds.Player, f ds.Frame[steer]) { boats[i].step(&f.Value) },
			ds.JitterBuffer{Repeat: 3}, ds.ForPrediction{}))
		world, err = ds.NewWorld(srv, "sea", ds.WorldConfig[boat]{TickHz: 60})
		uplinktest.Must(t, err)
		go func() { _ = srv.Serve(t.Context()) }()
		tick := uint64(1-i) * 10_000
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
}
