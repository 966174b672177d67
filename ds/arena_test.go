package ds_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// mover is an object of worlds that are sent as state.
type mover struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Rotation schema.Quat `uplink:"bits=11"`
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
		Name:     fmt.Sprint("m", i%10),
	}
	if tick >= rest {
		m.Velocity, m.Resting = schema.Vec3{}, true
	}
	return m
}

// arena is a world that stores its ticks. Movers move until tick rest, and some vanish then.
type arena struct {
	*ds.World[mover]
	t     testing.TB
	count int
	rest  uint64
	typ   *snapshot.Type[mover]

	mu      sync.Mutex
	streams map[*ds.Player]*ds.StateStream[mover]
	ticks   map[uint64]*snapshot.Set
}

func newArena(t testing.TB, s *ds.Server, count int, rest uint64, cfg ds.WorldConfig[mover]) *arena {
	t.Helper()
	typ, err := snapshot.Compile[mover]("movers")
	uplinktest.Must(t, err)
	w, err := ds.NewWorld(s, "movers", cfg)
	uplinktest.Must(t, err)
	return &arena{World: w, t: t, count: count, rest: rest, typ: typ, streams: map[*ds.Player]*ds.StateStream[mover]{}, ticks: map[uint64]*snapshot.Set{}}
}

// serveArena starts a server with an arena. joined receives each player.
func serveArena(t testing.TB, network *uplinktest.Network, count int, rest uint64, cfg ds.WorldConfig[mover]) (a *arena, srv *uplinktest.Server, joined chan *ds.Player) {
	t.Helper()
	joined = make(chan *ds.Player, 2)
	srv = uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(srv *ds.Server) error {
		a = newArena(t, srv, count, rest, cfg)
		return nil
	})
	return a, srv, joined
}

// stop stops the player's stream.
func (a *arena) stop(p *ds.Player) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams[p].Stop()
}

// setRest changes the tick at which the movers come to rest.
func (a *arena) setRest(tick uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rest = tick
}

// offer offers the world to a player as state.
func (a *arena) offer(p *ds.Player, cfg ds.StateConfig) {
	s, err := a.OfferState(p, cfg)
	if err != nil {
		a.t.Error(err)
		return
	}
	s.SetViewer(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams[p] = s
}

// put makes a tick.
func (a *arena) put(tick uint64) {
	set := a.typ.Schema().NewSet()
	uplinktest.Must(a.t, a.Begin(tick))
	for i := range a.count {
		if i%10 == 9 && tick >= a.rest {
			continue
		}
		m := moverAt(i, tick, a.rest)
		uplinktest.Must(a.t, a.Put(uint16(2*i), uint8(i), &m))
		uplinktest.Must(a.t, a.typ.Add(set, snapshot.Object{ID: uint16(2 * i), Generation: uint8(i)}, &m))
	}
	a.Commit()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ticks[tick] = set
}

// inputAt returns a player's input of a tick.
func inputAt(tick uint64) []byte { return []byte{byte(tick / 10), byte(tick / 700)} }

// step makes a tick and sends it.
func (a *arena) step(tick uint64) (sent int) {
	a.put(tick)
	a.mu.Lock()
	for _, s := range a.streams {
		for i := range a.count {
			uplinktest.Must(a.t, s.Prioritize(uint16(2*i), 1+float64(i%4)))
		}
		uplinktest.Must(a.t, s.AddInputs(tick, statesync.Input{Player: 3, Data: inputAt(tick)}))
	}
	a.mu.Unlock()
	n, err := a.Send()
	uplinktest.Must(a.t, err)
	return n
}

func (a *arena) run(first, last uint64) {
	for tick := first; tick <= last; tick++ {
		a.step(tick)
		time.Sleep(time.Second / 60)
	}
}
