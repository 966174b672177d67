package ds_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// orb is an object of these tests' worlds.
type orb struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000" interpolate:"position"`
	Rotation schema.Quat `uplink:"bits=11" interpolate:"orientation"`
	Jumps    uint8       `uplink:"width=2" interpolate:"teleports"`
	Lit      bool
}

// orbAt returns orb i at a tick. salt is different in each world.
func orbAt(salt, i int, tick uint64) orb {
	t, r := float64(tick)/60, 1+float64(i%17)
	sin, cos := math.Sincos(t*2/r + float64(i+salt))
	if i%3 == 0 { // rests
		sin, cos = math.Sincos(float64(i))
	}
	return orb{
		Position: schema.Vec3{X: 3*float64(i%30) + r*cos, Y: 3*float64(i/30) + r*sin, Z: float64(salt)},
		Rotation: schema.Quat{X: sin / 2, Y: cos / 2, Z: 0.3, W: 1},
		Lit:      (tick/30+uint64(i))%7 == 0,
	}
}

// stage is a world that stores its ticks. Some of its orbs vanish, and their IDs are later used for
// other orbs.
type stage struct {
	*ds.World[orb]
	salt, count int
	typ         *snapshot.Type[orb]

	mu    sync.Mutex
	ticks map[uint64]*snapshot.Set
}

func newStage(t testing.TB, s *ds.Server, name string, salt, count int, cfg ds.WorldConfig[orb]) *stage {
	t.Helper()
	typ, err := snapshot.Compile[orb](name)
	uplinktest.Must(t, err)
	w, err := ds.NewWorld(s, name, cfg)
	uplinktest.Must(t, err)
	return &stage{World: w, salt: salt, count: count, typ: typ, ticks: map[uint64]*snapshot.Set{}}
}

// step makes a tick and sends it.
func (s *stage) step(t testing.TB, tick uint64) (sent int) {
	t.Helper()
	set := s.typ.Schema().NewSet()
	uplinktest.Must(t, s.Begin(tick))
	for i := range s.count {
		life := (tick + uint64(13*i)) / 200
		if i%10 == 9 && life%4 == 3 {
			continue
		}
		o, g := orbAt(s.salt, i, tick), uint8(0)
		if i%10 == 9 {
			g = uint8(life / 4)
		}
		uplinktest.Must(t, s.Put(uint16(2*i), g, &o))
		uplinktest.Must(t, s.typ.Add(set, snapshot.Object{ID: uint16(2 * i), Generation: g}, &o))
	}
	s.Commit()
	s.mu.Lock()
	s.ticks[tick] = set
	s.mu.Unlock()
	n, err := s.Send()
	uplinktest.Must(t, err)
	return n
}

// initial returns a function that puts the orbs of the initial state.
func initial(salt, count int) func(put func(uint16, uint8, *orb) error) error {
	return func(put func(uint16, uint8, *orb) error) error {
		for i := range count {
			o := orbAt(salt, i, 0)
			if err := put(uint16(2*i), 0, &o); err != nil {
				return err
			}
		}
		return nil
	}
}

// watcher checks the received snapshots of a stage.
type watcher struct {
	t     testing.TB
	stage *stage
	typ   *snapshot.Type[orb]

	mu     sync.Mutex
	came   map[uint64]bool
	newest uint64
	late   int
}

func newWatcher(t testing.TB, s *stage) *watcher {
	return &watcher{t: t, stage: s, typ: s.typ.Clone(), came: map[uint64]bool{}}
}

// check is a SnapshotConfig.Handle. It checks that each snapshot equals that of the stage's tick
// and is received once.
func (w *watcher) check(s *client.Snapshot[orb]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage.mu.Lock()
	want := w.stage.ticks[s.Tick]
	w.stage.mu.Unlock()
	if want == nil || w.came[s.Tick] || s.Late != (s.Tick < w.newest) {
		w.t.Errorf("tick %d came, was sent: %v, came before: %v, late: %v after %d", s.Tick, want != nil, w.came[s.Tick], s.Late, w.newest)
		return
	}
	w.came[s.Tick] = true
	w.newest = max(w.newest, s.Tick)
	if s.Late {
		w.late++
	}
	got := w.typ.Schema().NewSet()
	for i, key := range s.IDs {
		id, g := client.SplitID(key)
		if err := w.typ.Add(got, snapshot.Object{ID: id, Generation: g}, &s.Objects[i]); err != nil {
			w.t.Error(err)
		}
	}
	if !got.Equal(want) {
		w.t.Errorf("tick %d is not what was sent", s.Tick)
	}
}

// ticks returns the ticks of the received snapshots in ascending order.
func (w *watcher) ticks() []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []uint64
	for tick := range w.came {
		all = append(all, tick)
	}
	slices.Sort(all)
	return all
}

// offerAll returns a Config.Joined that offers worlds to each player.
func offerAll(t testing.TB, worlds ...*ds.World[orb]) func(*ds.Player) {
	return func(p *ds.Player) {
		for _, w := range worlds {
			if _, err := w.Offer(p); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSnapshots sends worlds of several sizes over links with loss, delay and reordering, and
// checks that every snapshot that arrives equals the one sent.
func TestSnapshots(t *testing.T) {
	for _, c := range []struct {
		count int
		rtt   time.Duration
		link  simnet.Config
		ackHz float64
		known bool    // the initial state
		blank bool    // it is empty, so that the first snapshots need several datagrams
		least float64 // minimum share of snapshots that are received
	}{
		{count: 20, rtt: 20 * ms, least: 0.97},
		{count: 100, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, least: 0.9},
		{count: 100, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, known: true, ackHz: 60, least: 0.9},
		{count: 900, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, known: true, least: 0.8},
		{count: 900, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, least: 0.8},
		{count: 900, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, blank: true, least: 0.7},
		{count: 100, rtt: 300 * ms, link: simnet.Config{Loss: 0.2, Burst: 4, Duplicate: 0.2}, ackHz: 10, least: 0.7},
	} {
		name := fmt.Sprintf("%d/rtt=%v/loss=%v/ackHz=%v/known=%v/blank=%v", c.count, c.rtt, c.link.Loss, c.ackHz, c.known, c.blank)
		bubble(t, name, func(t *testing.T) {
			network := linkedBy(t, c.rtt, c.link)
			var s *stage
			cfg := ds.Config{}
			cfg.Joined = func(p *ds.Player) { offerAll(t, s.World)(p) }
			srv := uplinktest.Serve(t, network, cfg, func(srv *ds.Server) error {
				var w ds.WorldConfig[orb]
				if !c.blank {
					w.Initial = initial(0, c.count)
				}
				s = newStage(t, srv, "orbs", 0, c.count, w)
				return nil
			})
			w := newWatcher(t, s)
			conn := uplinktest.Dial(t, network, client.Config{})
			view := client.SnapshotConfig[orb]{Handle: w.check, AckHz: c.ackHz}
			if c.known {
				view.Initial = initial(0, c.count)
			}
			v, err := client.SubscribeSnapshots(t.Context(), conn, "orbs", view)
			uplinktest.Must(t, err)
			settle(time.Second)
			const ticks = 600
			for tick := range uint64(ticks) {
				s.step(t, tick+1)
				time.Sleep(time.Second / 60)
			}
			settle(time.Second)

			came := w.ticks()
			st, got := srv.Stats().Replication[0], v.Stats()
			t.Logf("%d came, %d late, sent %+v, got %+v", len(came), w.late, st, got)
			if float64(len(came)) < c.least*ticks || uint64(len(came)) != got.Messages {
				t.Errorf("%d of %d snapshots came, %d counted", len(came), ticks, got.Messages)
			}
			if got.Malformed+got.BaselineMissing != 0 || st.InvalidAcks != 0 || st.Unsent != 0 || st.Ready != 1 || st.Acked > got.Messages {
				t.Errorf("sent %+v, got %+v", st, got)
			}
			if (got.InitialBytes == 0) != (c.known || c.blank) || got.InitialBytes != st.InitialBytes || got.InitialBytes != got.Initial {
				t.Errorf("initial state of %d bytes, %d sent, %d came", got.Initial, st.InitialBytes, got.InitialBytes)
			}
			if c.blank && (st.Fragmented == 0 || got.Fragments == 0) || got.Datagrams > st.Datagrams {
				t.Errorf("%d messages sent in fragments, of which %d came", st.Fragmented, got.Fragments)
			}
			if c.link.Loss == 0 && (got.Messages != st.Messages || st.Acked != st.Messages) {
				t.Errorf("%d sent, %d came, %d acked, though nothing is lost", st.Messages, got.Messages, st.Acked)
			}
			var latest client.Snapshot[orb]
			if !v.Latest(&latest) || latest.Tick != came[len(came)-1] || latest.Time != time.Duration(latest.Tick)*time.Second/60 {
				t.Errorf("latest is of tick %d at %v", latest.Tick, latest.Time)
			}
		})
	}
}

// TestWorldErrors checks the errors for objects, ticks and configurations that cannot be sent.
func TestWorldErrors(t *testing.T) {
	srv, err := ds.Listen("127.0.0.1:0", ds.Config{})
	uplinktest.Must(t, err)
	defer srv.Close()
	w, err := ds.NewWorld(srv, "orbs", ds.WorldConfig[orb]{})
	uplinktest.Must(t, err)
	var out *schema.RangeError
	o := orb{Position: schema.Vec3{X: 1001}, Rotation: schema.Quat{W: 1}}
	if err := w.Put(7, 0, &o); err == nil {
		t.Error("put without a tick")
	}
	uplinktest.Must(t, w.Begin(3))
	if _, err := w.Send(); err == nil {
		t.Error("sent what is not committed")
	}
	if err := w.Put(7, 0, &o); !errors.As(err, &out) || out.Field != "Position" || !strings.Contains(err.Error(), "object 7") {
		t.Errorf("out of bounds: %v", err)
	} else {
		t.Log(err)
	}
	o.Position.X = 0
	uplinktest.Must(t, w.Put(7, 0, &o))
	if err := w.Put(7, 0, &o); err == nil {
		t.Error("put twice")
	}
	w.Commit()
	if err := w.Begin(3); err == nil {
		t.Error("a tick twice")
	}
	if _, err := ds.NewWorld(srv, "orbs", ds.WorldConfig[orb]{}); err == nil {
		t.Error("a name twice")
	}
	outside := func(put func(uint16, uint8, *orb) error) error {
		return put(9, 0, &orb{Position: schema.Vec3{Y: 1001}, Rotation: schema.Quat{W: 1}})
	}
	for want, cfg := range map[string]ds.WorldConfig[orb]{
		"SendHz is 1001":   {TickHz: 1000, SendHz: 1001},
		"SendHz is 61":     {SendHz: 61},
		"SendHz is -1":     {SendHz: -1},
		"TickHz is 1001":   {TickHz: 1001},
		"TickHz is NaN":    {TickHz: math.NaN()},
		"object 9: ":       {Initial: outside},
		"field \"Position": {Initial: outside},
	} {
		if _, err := ds.NewWorld(srv, "wrong", cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 65)} {
		if _, err := ds.NewWorld(srv, name, ds.WorldConfig[orb]{}); err == nil || !strings.Contains(err.Error(), "a world's name") {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	if _, err := ds.NewWorld(srv, "bad", ds.WorldConfig[struct{ C chan int }]{}); err == nil {
		t.Error("a field that cannot be sent")
	}
}
