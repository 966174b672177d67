package ds_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// mover is an object of these tests' worlds.
type mover struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity" interpolate:"position"`
	Rotation schema.Quat `uplink:"bits=11" interpolate:"orientation"`
	Velocity schema.Vec3 `uplink:"resolution=0.01,min=-100,max=100"`
	Lit      bool
	Resting  bool   `statesync:"rest"`
	Name     string `uplink:"max=8"`
}

// moverAt returns mover i at a tick. It moves in a circle until tick rest.
func moverAt(i int, tick, rest uint64) mover {
	r := 1 + float64(i%17)
	t := float64(min(tick, rest)) / 60
	sin, cos := math.Sincos(t*2/r + float64(i))
	m := mover{
		Position: schema.Vec3{X: 3*float64(i%30) + r*cos, Y: 3*float64(i/30) + r*sin},
		Rotation: schema.Quat{X: sin / 2, Y: cos / 2, Z: 0.3, W: 1},
		Velocity: schema.Vec3{X: -2 * sin, Y: 2 * cos},
		Lit:      (min(tick, rest)/30+uint64(i))%7 == 0,
		Name:     "m" + strconv.Itoa(i%10),
	}
	if tick >= rest {
		m.Velocity, m.Resting = schema.Vec3{}, true
	}
	return m
}

// never is a tick at which movers that do not rest come to rest.
const never = 1 << 40

// arena is a world that stores its ticks. Movers move until tick rest. Some vanish at times, and
// their ids are later used for others; these vanish for good at tick rest.
type arena struct {
	*ds.World[mover]
	t     testing.TB
	count int
	typ   *snapshot.Type[mover]

	mu      sync.Mutex
	rest    uint64
	streams map[*ds.Player]*ds.StateStream
	ticks   map[uint64]*snapshot.Set
}

func newArena(t testing.TB, s *ds.Server, name string, count int, rest uint64, cfg ds.WorldConfig[mover]) *arena {
	t.Helper()
	typ, err := snapshot.Compile[mover](name)
	uplinktest.Must(t, err)
	w, err := ds.NewWorld(s, name, cfg)
	uplinktest.Must(t, err)
	return &arena{World: w, t: t, count: count, rest: rest, typ: typ, streams: map[*ds.Player]*ds.StateStream{}, ticks: map[uint64]*snapshot.Set{}}
}

// serveArena starts a server with an arena. joined receives each player.
func serveArena(t testing.TB, network *uplinktest.Network, count int, rest uint64, cfg ds.WorldConfig[mover]) (a *arena, srv *uplinktest.Server, joined chan *ds.Player) {
	t.Helper()
	joined = make(chan *ds.Player, 2)
	srv = serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(srv *ds.Server) error {
		a = newArena(t, srv, "movers", count, rest, cfg)
		return nil
	})
	return a, srv, joined
}

// lossy returns a network with a round-trip time of 100 ms, 5 % packet loss and reordering.
func lossy(t testing.TB) *uplinktest.Network {
	return linkedBy(t, 100*ms, simnet.Config{Loss: 0.05, Jitter: 10 * ms})
}

// initial returns a function that puts the movers of the initial state.
func initial(count int) func(put func(uint16, uint8, *mover) error) error {
	return func(put func(uint16, uint8, *mover) error) (err error) {
		for i := range count {
			m := moverAt(i, 0, never)
			err = errors.Join(err, put(uint16(2*i), uint8(i), &m))
		}
		return err
	}
}

// offer offers the world to a player as state.
func (a *arena) offer(p *ds.Player, cfg ds.StateConfig) *ds.StateStream {
	s, err := a.OfferState(p, cfg)
	uplinktest.Must(a.t, err)
	s.SetViewer(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams[p] = s
	return s
}

// put makes a tick.
func (a *arena) put(tick uint64) {
	a.t.Helper()
	set := a.typ.Schema().NewSet()
	uplinktest.Must(a.t, a.Begin(tick))
	for i := range a.count {
		life := 0 // of those that vanish
		if i%10 == 9 {
			life = (int(tick) + 13*i) / 200
		}
		if life%4 == 3 || i%10 == 9 && tick >= a.rest {
			continue
		}
		m, id, g := moverAt(i, tick, a.rest), uint16(2*i), uint8(i+life/4)
		uplinktest.Must(a.t, a.Put(id, g, &m))
		uplinktest.Must(a.t, a.typ.Add(set, snapshot.Object{ID: id, Generation: g}, &m))
	}
	a.Commit()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ticks[tick] = set
}

// sent returns the objects of a tick, or nil.
func (a *arena) sent(tick uint64) *snapshot.Set {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ticks[tick]
}

// inputAt returns a player's input of a tick.
func inputAt(tick uint64) []byte { return []byte{byte(tick / 10), byte(tick / 700)} }

// step makes a tick and sends it.
func (a *arena) step(tick uint64) (sent int) {
	a.t.Helper()
	a.put(tick)
	for _, s := range a.streams {
		for i := range a.count {
			uplinktest.Must(a.t, s.Prioritize(uint16(2*i), 1+float64(i%4)))
		}
		uplinktest.Must(a.t, s.AddInputs(tick, statesync.Input{Player: 3, Data: inputAt(tick)}))
	}
	n, err := a.Send()
	uplinktest.Must(a.t, err)
	return n
}

func (a *arena) run(first, last uint64) {
	a.t.Helper()
	for tick := first; tick <= last; tick++ {
		a.step(tick)
		time.Sleep(time.Second / 60)
	}
	synctest.Wait() // what arrived in this instant has been handled
}

// copier checks what a client receives of an arena, and keeps its copy.
type copier struct {
	t   testing.TB
	typ *snapshot.Type[mover]

	mu      sync.Mutex
	arena   *arena
	newest  uint64
	came    map[uint64]bool // snapshots
	objects map[uint16]client.StateObject[mover]
	ticks   map[uint16]uint64
	inputs  map[int64]bool
	missing int
	firsts  int
	updates int
}

func newCopier(t testing.TB, a *arena) *copier {
	c := &copier{t: t, typ: a.typ.Clone()}
	c.reset(a)
	return c
}

// reset forgets all but the counts.
func (c *copier) reset(a *arena) {
	c.arena, c.newest, c.came = a, 0, map[uint64]bool{}
	c.objects, c.ticks, c.inputs = map[uint16]client.StateObject[mover]{}, map[uint16]uint64{}, map[int64]bool{}
}

// sent returns the objects of a tick, unless the tick or the mark of a late one is wrong.
func (c *copier) sent(tick uint64, at time.Duration, late bool) *snapshot.Set {
	set := c.arena.sent(tick)
	if set == nil || late != (tick < c.newest) || math.Abs(60*at.Seconds()-float64(tick)) > 1e-3 {
		c.t.Errorf("a message of tick %d at %v, late: %v after %d", tick, at, late, c.newest)
		return nil
	}
	c.newest = max(c.newest, tick)
	return set
}

// snapshot is a SnapshotConfig.Handle. It checks that each snapshot equals that of the arena's tick
// and is received once.
func (c *copier) snapshot(s *client.Snapshot[mover]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := c.sent(s.Tick, s.Time, s.Late)
	got := c.typ.Schema().NewSet()
	for i, key := range s.IDs {
		id, g := client.SplitID(key)
		uplinktest.Must(c.t, c.typ.Add(got, snapshot.Object{ID: id, Generation: g}, &s.Objects[i]))
	}
	if want != nil && (c.came[s.Tick] || !got.Equal(want)) {
		c.t.Errorf("tick %d is not what was sent, or came before: %v", s.Tick, c.came[s.Tick])
	}
	c.came[s.Tick] = true
}

// update is a StateConfig.Handle. It checks that each object equals that of the arena's tick, and
// that the inputs of each tick are received once.
func (c *copier) update(u *client.StateUpdate[mover]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.First {
		c.firsts++
		c.reset(c.arena)
	}
	set := c.sent(u.Tick, u.Time, u.Late)
	if set == nil {
		return
	}
	for i := range u.Objects {
		o := &u.Objects[i]
		c.updates++
		at, ok := set.Index(o.ID)
		if ok == o.Gone || ok && !c.equal(o, set, at) {
			c.t.Errorf("tick %d: object %d is %+v, in the world: %v", u.Tick, o.ID, o, ok)
		}
		if c.ticks[o.ID] > u.Tick {
			continue
		}
		if c.ticks[o.ID] = u.Tick; o.Gone {
			delete(c.objects, o.ID)
		} else {
			c.objects[o.ID] = *o
		}
	}
	for _, in := range u.Inputs {
		if c.inputs[in.Tick] {
			c.t.Errorf("inputs of tick %d came twice", in.Tick)
		}
		c.inputs[in.Tick] = true
		if in.Missing {
			c.missing++
		} else if len(in.Inputs) != 1 || in.Inputs[0].Player != 3 || string(in.Inputs[0].Data) != string(inputAt(uint64(in.Tick))) {
			c.t.Errorf("inputs of tick %d are %+v", in.Tick, in.Inputs)
		}
	}
}

// equal reports whether an object equals one of a set.
func (c *copier) equal(o *client.StateObject[mover], set *snapshot.Set, at int) bool {
	row := make([]int32, c.typ.Schema().Components())
	uplinktest.Must(c.t, c.typ.Quantize(row, &o.State))
	return slices.Equal(row, set.Row(at)) && set.Object(at).Generation == o.Generation
}

// whole checks that the client has all objects of a tick, at which all are at rest.
func (c *copier) whole(tick uint64) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.arena.sent(tick)
	if len(c.objects) != set.Len() {
		c.t.Errorf("the client has %d objects, the server %d", len(c.objects), set.Len())
	}
	for i := range set.Len() {
		if o := c.objects[set.Object(i).ID]; !c.equal(&o, set, i) {
			c.t.Errorf("object %d rests as %+v", set.Object(i).ID, o)
		}
	}
}
