package ds_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// mover is an object of worlds that go down as state.
type mover struct {
	Position rpcdelta.Vec3 `rpcdelta:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Rotation rpcdelta.Quat `rpcdelta:"bits=11"`
	Velocity rpcdelta.Vec3 `rpcdelta:"resolution=0.01,min=-100,max=100"`
	Lit      bool
	Resting  bool   `statesync:"rest"`
	Name     string `rpcdelta:"max=8"`
}

// moverAt is mover i at a tick: it circles until it comes to rest.
func moverAt(i int, tick, rest uint64) mover {
	r := 1 + float64(i%17)
	t := float64(min(tick, rest)) / 60
	sin, cos := math.Sincos(t*2/r + float64(i))
	m := mover{
		Position: rpcdelta.Vec3{X: 3*float64(i%30) + r*cos, Y: 3*float64(i/30) + r*sin},
		Rotation: rpcdelta.Quat{X: sin / 2, Y: cos / 2, Z: 0.3, W: 1},
		Velocity: rpcdelta.Vec3{X: -2 * sin, Y: 2 * cos},
		Lit:      (min(tick, rest)/30+uint64(i))%7 == 0,
		Name:     fmt.Sprint("m", i%10),
	}
	if tick >= rest {
		m.Velocity, m.Resting = rpcdelta.Vec3{}, true
	}
	return m
}

// arena is a world whose ticks are known: movers circle up to a tick, and some vanish then.
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

// offer offers it as state.
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

// inputAt is what a player does in a tick.
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

// copier is a client's world, by what comes of an arena.
type copier struct {
	t     testing.TB
	typ   *snapshot.Type[mover]
	arena *arena

	mu      sync.Mutex
	newest  uint64
	objects map[uint16]client.StateObject[mover]
	ticks   map[uint16]uint64
	inputs  map[int64]bool
	missing int
	firsts  int
	updates int
}

func newCopier(t testing.TB, a *arena) *copier {
	return &copier{t: t, typ: a.typ.Clone(), arena: a, objects: map[uint16]client.StateObject[mover]{}, ticks: map[uint16]uint64{}, inputs: map[int64]bool{}}
}

// take is a StateConfig.Handle: each object is exactly what was put, each tick's inputs come once.
func (c *copier) take(u *client.StateUpdate[mover]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.First {
		c.firsts++
		clear(c.objects)
		clear(c.ticks)
		clear(c.inputs)
		c.newest = 0
	}
	c.arena.mu.Lock()
	set := c.arena.ticks[u.Tick]
	c.arena.mu.Unlock()
	if set == nil || u.Late != (u.Tick < c.newest) || math.Abs(60*u.Time.Seconds()-float64(u.Tick)) > 1e-3 {
		c.t.Errorf("an update of tick %d at %v, late: %v after %d", u.Tick, u.Time, u.Late, c.newest)
		return
	}
	c.newest = max(c.newest, u.Tick)
	row := make([]int32, c.typ.Schema().Components())
	for i := range u.Objects {
		o := &u.Objects[i]
		c.updates++
		at, ok := set.Index(o.ID)
		if ok == o.Gone {
			c.t.Errorf("tick %d: object %d is gone: %v, in the world: %v", u.Tick, o.ID, o.Gone, ok)
			return
		}
		if ok {
			uplinktest.Must(c.t, c.typ.Quantize(row, &o.State))
			if want := set.Row(at); !equal(row, want) || set.Object(at).Generation != o.Generation {
				c.t.Errorf("tick %d: object %d is %v, want %v", u.Tick, o.ID, row, want)
			}
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

func equal(a, b []int32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// whole says that the client has what the server has, after all came to rest.
func (c *copier) whole(tick uint64) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arena.mu.Lock()
	set := c.arena.ticks[tick]
	c.arena.mu.Unlock()
	if len(c.objects) != set.Len() {
		c.t.Errorf("the client has %d objects, the server %d", len(c.objects), set.Len())
	}
	row := make([]int32, c.typ.Schema().Components())
	for i := range set.Len() {
		o := c.objects[set.Object(i).ID]
		uplinktest.Must(c.t, c.typ.Quantize(row, &o.State))
		if !equal(row, set.Row(i)) {
			c.t.Errorf("object %d rests at %v, want %v", o.ID, row, set.Row(i))
		}
	}
}

// TestStates has state of worlds go over links that lose, delay and reorder, within a bandwidth: every update is what was
// put, every tick's inputs come, and what comes to rest is as at the server in the end.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		count     int
		rtt       time.Duration
		link      simnet.Config
		cfg       ds.StateConfig
		sendHz    float64
		ackHz     float64
		fragments bool
	}{
		{count: 20, rtt: 20 * ms},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, cfg: ds.StateConfig{Bandwidth: 64_000}, ackHz: 60},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, cfg: ds.StateConfig{Bandwidth: 24_000}},
		{count: 300, rtt: 100 * ms, link: simnet.Config{Loss: 0.05, Jitter: 10 * ms}, cfg: ds.StateConfig{Bandwidth: 4_000_000, NoDelta: true}, fragments: true},
		{count: 100, rtt: 300 * ms, link: simnet.Config{Loss: 0.2, Burst: 4, Duplicate: 0.2}, ackHz: 10, sendHz: 20, fragments: true},
		{count: 200, rtt: 100 * ms, link: simnet.Config{Rate: 20_000, Jitter: 5 * ms}, cfg: ds.StateConfig{Bandwidth: 2_000_000, LeastBandwidth: 32_000, NoDelta: true}},
	} {
		name := fmt.Sprintf("%d/rtt=%v/loss=%v/bandwidth=%d/ackHz=%v/rate=%v", c.count, c.rtt, c.link.Loss, c.cfg.Bandwidth, c.ackHz, c.link.Rate)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up, down := symmetric(c.rtt, c.link)
				up.Rate = 0
				network := uplinktest.NewNetwork(t, up, down)
				var a *arena
				const rest, ticks = 400, 840
				srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { a.offer(p, c.cfg) }}, func(srv *ds.Server) error {
					a = newArena(t, srv, c.count, rest, ds.WorldConfig[mover]{SendHz: c.sendHz})
					return nil
				})
				got := newCopier(t, a)
				conn := uplinktest.Dial(t, network, client.Config{})
				v, err := client.States(conn, "movers", client.StateConfig[mover]{Handle: got.take, AckHz: c.ackHz})
				uplinktest.Must(t, err)
				settle(time.Second)
				begin := time.Now()
				every := uint64(1)
				if c.sendHz != 0 {
					every = uint64(60 / c.sendHz)
				}
				for tick := every; tick <= ticks; tick += every {
					a.step(tick)
					time.Sleep(time.Duration(every) * time.Second / 60)
				}
				seconds := time.Since(begin).Seconds()
				settle(time.Second)
				got.whole(ticks)

				st, in := srv.Stats().Downstreams[0], v.Stats()
				bits := 8 * float64(st.WireBytes()) / seconds
				t.Logf("%.0f bits a second, sent %+v, got %+v", bits, st, in)
				limit := c.cfg.Bandwidth
				if limit == 0 {
					limit = ds.DefaultBandwidth
				}
				if bits > 1.01*float64(limit) {
					t.Errorf("%.0f bits a second, want at most %d", bits, limit)
				}
				if in.Malformed+in.BaselineMissing+in.Desync+in.Unpolled != 0 || st.BadAcks != 0 || st.Unsent != 0 || st.Ready != 1 || st.Acked > in.Messages {
					t.Errorf("sent %+v, got %+v", st, in)
				}
				if in.Updates != uint64(got.updates) || in.Updates > st.Updates || st.Updates == 0 {
					t.Errorf("%d updates came, %d counted of %d", got.updates, in.Updates, st.Updates)
				}
				if c.fragments != (st.Fragmented > 0) || got.firsts != 1 {
					t.Errorf("%d messages in fragments, %d firsts", st.Fragmented, got.firsts)
				}
				if share := 1 - float64(in.Messages)/float64(st.Messages); c.cfg.LeastBandwidth != 0 && share > 0.05 {
					t.Errorf("%.3f of the messages were lost to a queue", share)
				}
				if least := 0.98 * ticks / float64(every); c.sendHz == 0 && float64(len(got.inputs)-got.missing) < least {
					t.Errorf("inputs of %d ticks came, of %d more that they are missing", len(got.inputs)-got.missing, got.missing)
				}
			})
		})
	}
}

// TestStatesAndSnapshots of one world, to two players, one of whom then changes to the other codec.
func TestStatesAndSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var a *arena
		joined := make(chan *ds.Player, 2)
		srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(srv *ds.Server) error {
			a = newArena(t, srv, 50, 1<<40, ds.WorldConfig[mover]{})
			return nil
		})
		one := uplinktest.Dial(t, network, client.Config{})
		players := []*ds.Player{<-joined}
		two := uplinktest.Dial(t, network, client.Config{})
		players = append(players, <-joined)
		a.offer(players[0], ds.StateConfig{})
		snap, err := ds.Snapshots[mover](players[1])
		uplinktest.Must(t, err)
		got := newCopier(t, a)
		v, err := client.States(one, "movers", client.StateConfig[mover]{})
		uplinktest.Must(t, err)
		w, err := client.Snapshots(two, "movers", client.SnapshotConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)
		polled := 0
		for tick := range uint64(200) {
			if n := a.step(tick + 1); n != 2 {
				t.Fatalf("tick %d was sent to %d", tick+1, n)
			}
			time.Sleep(time.Second / 60)
			polled += v.Poll(got.take)
		}
		settle(time.Second)
		polled += v.Poll(got.take)
		if st := v.Stats(); st.Messages < 180 || uint64(polled) != st.Messages || w.Stats().Messages < 180 {
			t.Errorf("%d polled, %+v, snapshots %+v", polled, st, w.Stats())
		}

		// Each refuses the other codec, at both ends.
		if _, err := ds.Snapshots[mover](players[0]); err == nil || !strings.Contains(err.Error(), "Stop") {
			t.Errorf("offered both ways: %v", err)
		}
		uplinktest.Must(t, w.Close())
		if _, err := client.States(two, "movers", client.StateConfig[mover]{}); err == nil || !strings.Contains(err.Error(), `"snapshot"`) {
			t.Errorf("taken by the other codec: %v", err)
		} else {
			t.Log(err)
		}
		snap.Stop()
		settle(time.Second)
		a.offer(players[1], ds.StateConfig{})
		late := newCopier(t, a)
		_, err = client.States(two, "movers", client.StateConfig[mover]{Handle: late.take})
		uplinktest.Must(t, err)
		a.run(201, 300)
		settle(time.Second)
		if late.firsts != 1 || late.updates == 0 {
			t.Errorf("%d updates came after the change", late.updates)
		}
		// What nobody polls is dropped, and comes again.
		if st := v.Stats(); st.Unpolled != 0 {
			t.Errorf("%+v", st)
		}
		a.run(301, 500)
		settle(time.Second)
		if st := v.Stats(); st.Unpolled == 0 {
			t.Errorf("%+v", st)
		}
		v.Poll(got.take)
		a.rest = 520
		for tick := uint64(501); tick < 800; tick++ {
			a.step(tick)
			time.Sleep(time.Second / 60)
			v.Poll(got.take)
		}
		settle(time.Second)
		v.Poll(got.take)
		got.whole(799)
		late.whole(799)
		if st := srv.Stats().Downstreams; len(st) != 1 || st[0].Players != 2 || st[0].BadAcks != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestStatesReconnect: the view goes on after the server has crashed and come back at another tick.
func TestStatesReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var a *arena
		serve := func() {
			uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { a.offer(p, ds.StateConfig{}) }}, func(srv *ds.Server) error {
				a = newArena(t, srv, 60, 400, ds.WorldConfig[mover]{})
				return nil
			})
		}
		serve()
		c := newCopier(t, a)
		conn := uplinktest.Dial(t, network, client.Config{})
		v, err := client.States(conn, "movers", client.StateConfig[mover]{Handle: c.take})
		uplinktest.Must(t, err)
		settle(time.Second)
		a.run(1, 200)
		network.Crash(t, uplinktest.Addr)
		settle(time.Second)
		serve()
		c.mu.Lock()
		c.arena = a
		c.mu.Unlock()
		settle(5 * time.Second)
		a.run(1, 600)
		settle(time.Second)
		c.whole(600)
		if c.firsts != 2 || v.Stats().Messages < 700 {
			t.Errorf("%d firsts, %+v", c.firsts, v.Stats())
		}
		uplinktest.Must(t, v.Err())
	})
}

// label has a tag that there is not.
type label struct {
	Name string `rpcdelta:"max=16" statesync:"sleep"`
}

// lonely differs from mover in that nothing says that it rests.
type lonely struct {
	Position rpcdelta.Vec3 `rpcdelta:"resolution=0.01,min=-1000,max=1000,velocity=Velocity"`
	Rotation rpcdelta.Quat `rpcdelta:"bits=11"`
	Velocity rpcdelta.Vec3 `rpcdelta:"resolution=0.01,min=-100,max=100"`
	Lit      bool
	Resting  bool
}

// TestStatesRefused: what cannot be taken or sent is an error that says why.
func TestStatesRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := lossy(t)
		var a *arena
		joined := make(chan *ds.Player, 1)
		var named *ds.World[label]
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(srv *ds.Server) (err error) {
			a = newArena(t, srv, 60, 400, ds.WorldConfig[mover]{})
			named, err = ds.NewWorld(srv, "named", ds.WorldConfig[label]{})
			return err
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		player := <-joined
		if _, err := named.OfferState(player, ds.StateConfig{}); err == nil || !strings.Contains(err.Error(), `"Name"`) {
			t.Errorf("an unknown tag: %v", err)
		}
		for want, cfg := range map[string]ds.StateConfig{
			"Bandwidth is 999":         {Bandwidth: 999},
			"Bandwidth is -1":          {Bandwidth: -1},
			"LeastBandwidth is 999":    {LeastBandwidth: 999},
			"LeastBandwidth is 256001": {LeastBandwidth: 256_001},
			"InputTicks is 33":         {InputTicks: 33},
		} {
			if _, err := a.OfferState(player, cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %s: %v", want, err)
			}
		}
		s, err := ds.States[mover](player, ds.StateConfig{Bandwidth: 1000})
		uplinktest.Must(t, err)
		if s.Ready() || !errors.Is(s.Send(), ds.ErrNotReady) || s.Bandwidth() != 1000 {
			t.Errorf("ready before the client took part, with %d", s.Bandwidth())
		}
		var differs *client.WorldError
		_, err = client.States(conn, "movers", client.StateConfig[lonely]{})
		if !errors.As(err, &differs) || differs.Field != 4 || differs.Here != "Resting bool" || differs.There != "Resting bool rest" {
			t.Errorf("another field rests: %v", err)
		}
		if _, err := client.States(conn, "movers", client.StateConfig[label]{}); err == nil || !strings.Contains(err.Error(), `"Name"`) {
			t.Errorf("an unknown tag: %v", err)
		}
		if _, err := client.States(conn, "movers", client.StateConfig[mover]{AckHz: 1001}); err == nil || !strings.Contains(err.Error(), "StateConfig.AckHz") {
			t.Errorf("acks: %v", err)
		}
		_, err = client.States(conn, "movers", client.StateConfig[mover]{})
		uplinktest.Must(t, err)
		settle(time.Second)

		// A priority that is none, inputs that go back, and a bandwidth that has no room for anything.
		var priority *statesync.PriorityError
		for _, p := range []float64{math.NaN(), math.Inf(1), -1} {
			if err := s.Prioritize(7, p); !errors.As(err, &priority) || priority.Object != 7 {
				t.Errorf("priority %v: %v", p, err)
			}
		}
		uplinktest.Must(t, s.AddInputs(5))
		if err := s.AddInputs(5); !errors.Is(err, statesync.ErrTick) {
			t.Errorf("inputs twice: %v", err)
		}
		if err := s.AddInputs(1 << 60); err == nil {
			t.Error("inputs of a tick that cannot be")
		}
		if err := s.SetBandwidth(10, 0); err == nil {
			t.Error("10 bits a second")
		}
		for tick := uint64(1); tick <= 1200; tick++ {
			a.put(tick)
			uplinktest.Must(t, s.Prioritize(0, 1))
			uplinktest.Must(t, s.Send())
			time.Sleep(time.Second / 60)
		}
		st := s.Stats()
		if bits := 8 * st.WireBytes() / 20; st.Messages < 5 || bits > 1100 {
			t.Errorf("%d messages of %d bits a second in all", st.Messages, bits)
		}
		s.Stop()
		settle(time.Second)
		if s.Ready() || s.Send() == nil {
			t.Error("sent after Stop")
		}
	})
}

// TestStatesBeginAnew: either end ends it and begins anew at once, while messages and acks of before are still on their way: none
// of them is taken for one of the new stream's.
func TestStatesBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, down := symmetric(150*ms, simnet.Config{Loss: 0.05, Jitter: 30 * ms})
		network := uplinktest.NewNetwork(t, up, down)
		var a *arena
		joined := make(chan *ds.Player, 1)
		srv := uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { joined <- p }}, func(srv *ds.Server) error {
			a = newArena(t, srv, 30, 1<<40, ds.WorldConfig[mover]{})
			return nil
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		player := <-joined
		stop := make(chan struct{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			for tick := uint64(1); ; tick++ {
				select {
				case <-stop:
					return
				default:
				}
				a.step(tick)
				time.Sleep(time.Second / 60)
			}
		}()
		a.offer(player, ds.StateConfig{NoDelta: true}) // whole states refer to nothing, and are taken from whichever stream
		for round := range 20 {
			got := newCopier(t, a)
			v, err := client.States(conn, "movers", client.StateConfig[mover]{Handle: got.take})
			uplinktest.Must(t, err)
			settle(time.Duration(50+37*round) * ms)
			if round%5 == 4 {
				a.mu.Lock()
				a.streams[player].Stop()
				a.mu.Unlock()
				a.offer(player, ds.StateConfig{NoDelta: round%10 == 4})
			}
			uplinktest.Must(t, v.Close())
		}
		close(stop)
		<-over
		settle(time.Second)
		if st := srv.Stats().Downstreams[0]; st.BadAcks != 0 || st.Messages == 0 || st.Ready != 0 {
			t.Errorf("%+v", st)
		}
	})
}
