package ds_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
)

// numbered is a call with its number, of which the other fields are functions.
type numbered struct {
	Number int32
	Half   float32 `uplink:"resolution=0.5"`
	Bits   uint16
}

func numberedAt(n int32) numbered { return numbered{Number: n, Half: float32(n) / 2, Bits: uint16(n)} }

// member is a server of a fleet.
type member struct {
	*ds.Server
	addr  string
	world *ds.World[mover]
	tick  atomic.Uint64
	poll  bool
}

// serverGroup is several servers with the same world and RPCs, and what they received.
type serverGroup struct {
	t       testing.TB
	network *uplinktest.Network
	members []*member
	state   bool // the world is offered as state

	mu       sync.Mutex
	players  map[uint64]*ds.Player // the newest one by client id
	visits   map[uint64][]*visit   // by client id
	outcomes map[*ds.Player]error
	left     map[*ds.Player]error
	errors   []string
}

// visit is what a player did at one server.
type visit struct {
	player   *ds.Player
	at       *member
	steps    []int32
	reliable []int32
	messages []uint32
	payload  []byte
}

// newServerGroup starts servers on a network.
func newServerGroup(t testing.TB, n *uplinktest.Network, count int, change ...func(*ds.Config)) *serverGroup {
	f := &serverGroup{
		t: t, network: n, players: map[uint64]*ds.Player{}, visits: map[uint64][]*visit{}, outcomes: map[*ds.Player]error{}, left: map[*ds.Player]error{},
	}
	for i := range count {
		f.add(fmt.Sprint("127.0.0.1:", 7777+i), change...)
	}
	return f
}

func (f *serverGroup) add(addr string, change ...func(*ds.Config)) *member {
	m := &member{addr: addr}
	cfg := ds.Config{Network: f.network}
	cfg.Hooks.Connected = func(p *ds.Player) {
		var err error
		if f.state {
			_, err = m.world.OfferState(p, ds.StateConfig{})
		} else {
			_, err = m.world.Offer(p)
		}
		uplinktest.Must(f.t, err)
	}
	cfg.Joined = func(p *ds.Player) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.players[p.ClientID()] = p
		f.visits[p.ClientID()] = append(f.visits[p.ClientID()], &visit{player: p, at: m, payload: p.HandoverPayload()})
	}
	cfg.Left = func(p *ds.Player, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.left[p] = err
	}
	cfg.Hooks.HandedOver = func(p *ds.Player, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.outcomes[p] = err
	}
	cfg.OnMessage = func(p *ds.Player, b []byte) {
		f.visited(p, func(v *visit) { v.messages = append(v.messages, binary.LittleEndian.Uint32(b)) })
	}
	cfg.Hooks.OnRequest = func(r *ds.Request) {
		time.AfterFunc(150*ms, func() { _ = r.Reply(r.Message) })
	}
	for _, c := range change {
		c(&cfg)
	}
	srv, err := ds.Listen(addr, cfg)
	uplinktest.Must(f.t, err)
	m.Server, m.poll = srv, cfg.Poll
	took := func(reliable bool) func(p *ds.Player, fr ds.Frame[numbered]) {
		return func(p *ds.Player, fr ds.Frame[numbered]) {
			n := fr.Value.Number
			f.visited(p, func(v *visit) {
				if fr.Value != numberedAt(n) {
					f.errors = append(f.errors, fmt.Sprintf("%+v, want %+v", fr.Value, numberedAt(n)))
				}
				if reliable {
					v.reliable = append(v.reliable, n)
				} else {
					v.steps = append(v.steps, n)
				}
			})
		}
	}
	uplinktest.Must(f.t, ds.Handle(srv, "Step", took(false)))
	uplinktest.Must(f.t, ds.Handle(srv, "Buy", took(true)))
	m.world, err = ds.NewWorld(srv, "movers", ds.WorldConfig[mover]{TickHz: 60})
	uplinktest.Must(f.t, err)
	go func() { _ = srv.Serve(context.Background()) }()
	end := polling(f.t, time.Second/60, m.step)
	f.t.Cleanup(func() { end(); _ = srv.Close() })
	f.members = append(f.members, m)
	return m
}

// step polls, and sends a tick of the world.
func (m *member) step() {
	if m.poll {
		m.Poll()
	}
	tick := m.tick.Add(1)
	if m.world.Begin(tick) != nil {
		return
	}
	for i := range 5 {
		o := moverAt(i, tick, never)
		_ = m.world.Put(uint16(i), 0, &o)
		_ = m.world.Prioritize(uint16(i), 1)
	}
	m.world.Commit()
	_, _ = m.world.Send()
}

func (f *serverGroup) visited(p *ds.Player, do func(*visit)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.visits[p.ClientID()] {
		if v.player == p {
			do(v)
			return
		}
	}
	f.errors = append(f.errors, "a player who has not joined")
}

// player returns the newest player of a client.
func (f *serverGroup) player(id uint64) *ds.Player {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.players[id]
}

// ids returns the ids of all clients.
func (f *serverGroup) ids() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.players))
}

func (f *serverGroup) target(i int) ds.Target {
	return ds.Target{Addrs: []netip.AddrPort{netip.MustParseAddrPort(f.members[i].addr)}}
}

func (f *serverGroup) at(p *ds.Player) (v *visit) {
	f.visited(p, func(o *visit) { v = o })
	return v
}

// handoverClient is a client that plays.
type handoverClient struct {
	*client.Conn
	t     *testing.T
	steps *client.Stream[numbered]
	buys  *client.Stream[numbered]
	view  *client.SnapshotView[mover]

	next, bought int32
	sent         uint32
	unsent       int          // calls that were refused
	pause        atomic.Int64 // nanoseconds for which the next update of the world stops the client

	mu        sync.Mutex
	received  []uint32 // messages
	events    []client.Event
	snapshots int
	lastTick  time.Time
	longest   time.Duration // without a snapshot
}

// join joins the first server, or that at an address.
func (f *serverGroup) join(t *testing.T, cfg client.Config, addr ...string) *handoverClient {
	g := &handoverClient{t: t}
	cfg.Network = f.network
	cfg.OnMessage = func(b []byte) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.received = append(g.received, binary.LittleEndian.Uint32(b))
	}
	cfg.OnEvent = func(e client.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.events = append(g.events, e)
	}
	var err error
	g.Conn, err = client.Dial(t.Context(), append(addr, f.members[0].addr)[0], cfg)
	uplinktest.Must(t, err)
	t.Cleanup(func() { uplinktest.Must(t, g.Close()) })
	g.steps, err = client.Bind[numbered](t.Context(), g.Conn, "Step", client.BindConfig{})
	uplinktest.Must(t, err)
	g.buys, err = client.Bind[numbered](t.Context(), g.Conn, "Buy", client.BindConfig{Reliable: true})
	uplinktest.Must(t, err)
	if f.state {
		_, err = client.SubscribeState(t.Context(), g.Conn, "movers", client.StateConfig[mover]{Handle: func(u *client.StateUpdate[mover]) {
			for _, o := range u.Objects {
				g.shown(o.ID, &o.State)
			}
			g.updated(u.Received)
		}})
	} else {
		g.view, err = client.SubscribeSnapshots(t.Context(), g.Conn, "movers", client.SnapshotConfig[mover]{Handle: func(s *client.Snapshot[mover]) {
			for i := range s.Objects {
				id, _ := client.SplitID(s.IDs[i])
				g.shown(id, &s.Objects[i])
			}
			g.updated(s.Received)
		}})
	}
	uplinktest.Must(t, err)
	return g
}

// shown checks an object of the world.
func (g *handoverClient) shown(id uint16, o *mover) {
	if o.Name != fmt.Sprint("m", id) {
		g.t.Errorf("object %d is %+v", id, o)
	}
}

// updated notes that the world was received.
func (g *handoverClient) updated(at time.Time) {
	time.Sleep(time.Duration(g.pause.Swap(0)))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.snapshots++; g.snapshots > 1 {
		g.longest = max(g.longest, at.Sub(g.lastTick))
	}
	g.lastTick = at
}

// play sends a step, and every tenth time reliable calls and messages.
func (g *handoverClient) play() {
	s := numberedAt(g.next)
	if _, err := g.steps.Send(&s); err != nil {
		g.unsent++
	}
	if g.next++; g.next%10 != 0 {
		return
	}
	b := numberedAt(g.bought)
	if _, err := g.buys.Send(&b); err == nil {
		g.bought++
	}
	if g.SendReliable(binary.LittleEndian.AppendUint32(nil, g.sent)) == nil {
		g.sent++
	}
}

// count returns the number of events of a step of a handover.
func (g *handoverClient) count(h client.Handover) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Handover == h {
			n++
		}
	}
	return n
}

// once checks that each of the numbers from 0 to n-1 is there exactly once.
func once[T int32 | uint32](t *testing.T, what string, got []T, n T) {
	t.Helper()
	slices.Sort(got)
	if len(got) != int(n) {
		t.Errorf("%s: %d arrived, %d were sent", what, len(got), n)
	}
	for i, v := range got {
		if v != T(i) {
			t.Errorf("%s: number %d at %d", what, v, i)
			return
		}
	}
}

// token returns a token for all servers of the serverGroup.
func (f *serverGroup) token(id uint64, change ...func(*token.Claims)) token.Token {
	f.t.Helper()
	c := token.Claims{ClientID: id, Issued: time.Now(), Expires: time.Now().Add(time.Minute)}
	for i := range f.members {
		c.Servers = append(c.Servers, f.target(i).Addrs...)
	}
	for _, f := range change {
		f(&c)
	}
	tok, err := token.Issue(token.Development().Issuer(), c)
	uplinktest.Must(f.t, err)
	return tok
}
