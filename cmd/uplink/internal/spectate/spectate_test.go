package spectate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/capture"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/budget"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

func TestMain(m *testing.M) { uplinktest.Main(m) }

type car struct {
	At    schema.Vec2 `uplink:"resolution=0.5"`
	Lit   bool
	Gears [2]int8
	Plate string `uplink:"max=8"`
}

type tree struct{ Height uint16 }

// carAt returns a car at a tick.
func carAt(i int, tick uint64) car {
	return car{schema.Vec2{X: float64(tick) / 2, Y: float64(i)}, i%2 == 0, [2]int8{int8(i), -1}, fmt.Sprint("car ", i)}
}

const (
	ticks = 300
	cars  = 20
	far   = 40 // objects of the initial state, which makes snapshots large
)

// play captures a game of two players, of whom the second knows the initial state of the world
// "road". In the world "town", player i sees area i and joins twice.
func play(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.uplink")
	w, err := capture.Create(path, capture.Config{})
	uplinktest.Must(t, err)
	link := simnet.Config{Delay: 30 * time.Millisecond, Loss: 0.1, Jitter: 5 * time.Millisecond}
	network := uplinktest.NewNetwork(t, link, link)
	joined := make(chan *ds.Player, 2)
	var road, town *ds.World[car]
	var trees *ds.ObjectType[tree]
	initial := func(put func(uint16, uint8, *car) error) (err error) {
		for i := range far {
			c := carAt(i, 0)
			err = errors.Join(err, put(uint16(1000+i), 0, &c))
		}
		return err
	}
	srv := uplinktest.Serve(t, network, ds.Config{Hooks: ds.Hooks{Tap: w.Tap()}, Joined: func(p *ds.Player) { joined <- p }}, func(s *ds.Server) (err error) {
		road, err = ds.NewWorld(s, "road", ds.WorldConfig[car]{Initial: initial})
		uplinktest.Must(t, err)
		town, err = ds.NewWorld(s, "town", ds.WorldConfig[car]{Areas: true})
		uplinktest.Must(t, err)
		trees, err = ds.AddType[tree](town, "tree")
		return errors.Join(err, ds.Handle(s, "A", func(*ds.Player, ds.Frame[uplinktest.Move]) {}))
	})
	var rpcs []*client.Stream[uplinktest.Move]
	var again []func()
	for i := range 2 {
		conn := uplinktest.Dial(t, network, client.Config{})
		rpcs = append(rpcs, uplinktest.Bind(t, conn, "A"))
		p := <-joined
		_, err := road.Offer(p)
		uplinktest.Must(t, err)
		s, err := town.Offer(p)
		uplinktest.Must(t, err)
		s.See(area.ID(1 + i))
		cfg := client.SnapshotConfig[car]{}
		if i == 1 {
			cfg.Initial = initial
		}
		_, err = client.SubscribeSnapshots(t.Context(), conn, "road", cfg)
		uplinktest.Must(t, err)
		join := func() *client.SnapshotView[car] {
			types, err := client.NewObjectType("tree", client.SnapshotConfig[tree]{})
			uplinktest.Must(t, err)
			v, err := client.SubscribeSnapshots(t.Context(), conn, "town", client.SnapshotConfig[car]{Types: []client.AnyObjectType{types}})
			uplinktest.Must(t, err)
			return v
		}
		v := join()
		again = append(again, func() { v.Close(); join() })
	}
	for tick := uint64(1); tick <= ticks; tick++ {
		uplinktest.Must(t, errors.Join(road.Begin(tick), town.Begin(tick)))
		for i := range cars {
			c := carAt(i, tick)
			uplinktest.Must(t, road.Put(uint16(i), 3, &c))
			uplinktest.Must(t, town.Put(uint16(i), 3, &c, area.ID(i%3+1)))
		}
		uplinktest.Must(t, trees.Put(9, 0, &tree{uint16(tick)}))
		for _, w := range []*ds.World[car]{road, town} {
			w.Commit()
			_, err := w.Send()
			uplinktest.Must(t, err)
		}
		for _, s := range rpcs {
			m := uplinktest.MoveAt(1, tick)
			uplinktest.Must(t, uplinktest.Sent(s.Send(&m)))
		}
		if tick == ticks/2 {
			for _, f := range again {
				f()
			}
		}
		time.Sleep(time.Second / 60)
	}
	time.Sleep(time.Second)
	uplinktest.Must(t, errors.Join(srv.Close(), w.Close()))
	data, err := os.ReadFile(path)
	uplinktest.Must(t, err)
	return data
}

// want returns the text of an object at a tick.
func want(typ string, id uint16, tick uint64) string {
	if typ == "tree" {
		return fmt.Sprintf("tree 9.0 Height=%d", tick)
	}
	return fmt.Sprintf("%s %d.3 At=[%v %d] Lit=%t Gears=[%d -1] Plate=car %d", typ, id, float64(tick)/2, id, id%2 == 0, id, id)
}

// TestRun plays worlds of a capture back, also what the clients did not receive, and compares each
// object with what the server put.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := play(t)
		for _, c := range []struct {
			world         string
			player, shown uint64 // the player that is chosen, and the one that is shown
			objects       int
		}{
			{world: "road", shown: 1, objects: cars},
			{world: "town", shown: 1, objects: 8},
			{world: "town", player: 2, shown: 2, objects: 8},
		} {
			objects := 0
			last := uint64(0)
			report, err := Run(bytes.NewReader(data), Options{World: c.world, Player: c.player, Each: func(s *Snapshot) error {
				var b strings.Builder
				uplinktest.Must(t, s.WriteText(&b))
				lines := strings.Split(b.String(), "\n  ")
				for i, o := range s.Objects {
					w := want(o.Type, o.ID, s.Tick-o.Age)
					if o.Age > 0 {
						w += fmt.Sprintf(" (%d ticks older)", o.Age)
					}
					if got := strings.TrimSpace(lines[i+1]); got != w || c.world == "town" && o.Type == "town" && o.ID%3+1 != uint16(c.shown) {
						t.Fatalf("%s, tick %d: %s, want %s", c.world, s.Tick, got, w)
					}
				}
				if s.Tick <= last || s.World != c.world || s.Player != c.shown {
					t.Fatalf("tick %d after %d of %s, player %d", s.Tick, last, s.World, s.Player)
				}
				last, objects = s.Tick, objects+len(s.Objects)
				var again Snapshot
				j, err := json.Marshal(s)
				uplinktest.Must(t, err)
				if err := json.Unmarshal(bytes.ReplaceAll(j, []byte(`"fields"`), []byte(`"x"`)), &again); err != nil || len(again.Objects) != len(s.Objects) {
					t.Fatalf("%s: %v", j, err)
				}
				return nil
			}})
			if err != nil || report.Player != c.shown || report.Skipped != 0 || report.Snapshots < ticks*9/10 || last != ticks || !slices.Equal(report.Worlds, []string{"road", "town"}) {
				t.Errorf("%+v, %v", report, err)
			}
			if objects < int(report.Snapshots)*c.objects*9/10 {
				t.Errorf("%s: %d objects in %d snapshots", c.world, objects, report.Snapshots)
			}
		}
		none := func(*Snapshot) error { return nil }
		if r, err := Run(bytes.NewReader(data), Options{World: "road", Player: 2, Each: none}); err != nil || r.Snapshots != 0 {
			t.Errorf("a player who knows the initial state: %+v, %v", r, err)
		}
		if r, err := Run(bytes.NewReader(data), Options{World: "moon", Each: none}); err != nil || r.Player != 0 || len(r.Worlds) != 2 {
			t.Errorf("an unknown world: %+v, %v", r, err)
		}
		var full *budget.Error
		if _, err := Run(bytes.NewReader(data), Options{World: "road", Memory: 1 << 10, Each: none}); !errors.As(err, &full) {
			t.Errorf("too little memory: %v", err)
		}
	})
}
