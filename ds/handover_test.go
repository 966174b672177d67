package ds_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
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
}

// squad is several servers with the same world and RPCs, and what they received.
type squad struct {
	t       testing.TB
	network *uplinktest.Network
	members []*member

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

// newSquad starts servers on a network.
func newSquad(t testing.TB, n *uplinktest.Network, count int, change ...func(*ds.Config)) *squad {
	f := &squad{
		t: t, network: n, players: map[uint64]*ds.Player{}, visits: map[uint64][]*visit{}, outcomes: map[*ds.Player]error{}, left: map[*ds.Player]error{},
	}
	for i := range count {
		f.add(fmt.Sprint("127.0.0.1:", 7777+i), change...)
	}
	return f
}

func (f *squad) add(addr string, change ...func(*ds.Config)) *member {
	m := &member{addr: addr}
	cfg := ds.Config{Network: f.network}
	cfg.Joined = func(p *ds.Player) {
		_, err := m.world.Offer(p)
		uplinktest.Must(f.t, err)
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
	cfg.HandedOver = func(p *ds.Player, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.outcomes[p] = err
	}
	cfg.OnMessage = func(p *ds.Player, b []byte) {
		f.visited(p, func(v *visit) { v.messages = append(v.messages, binary.LittleEndian.Uint32(b)) })
	}
	cfg.OnRequest = func(r *ds.Request) {
		time.AfterFunc(150*ms, func() { _ = r.Reply(r.Message) })
	}
	for _, c := range change {
		c(&cfg)
	}
	srv, err := ds.Listen(addr, cfg)
	uplinktest.Must(f.t, err)
	m.Server = srv
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

// step sends a tick of the world.
func (m *member) step() {
	tick := m.tick.Add(1)
	if m.world.Begin(tick) != nil {
		return
	}
	for i := range 5 {
		o := moverAt(i, tick, never)
		_ = m.world.Put(uint16(i), 0, &o)
	}
	m.world.Commit()
	_, _ = m.world.Send()
}

func (f *squad) visited(p *ds.Player, do func(*visit)) {
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
func (f *squad) player(id uint64) *ds.Player {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.players[id]
}

// ids returns the ids of all clients.
func (f *squad) ids() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.players))
}

func (f *squad) target(i int) ds.Target {
	return ds.Target{Addrs: []netip.AddrPort{netip.MustParseAddrPort(f.members[i].addr)}}
}

func (f *squad) at(p *ds.Player) (v *visit) {
	f.visited(p, func(o *visit) { v = o })
	return v
}

// traveler is a client that plays.
type traveler struct {
	*client.Conn
	t     *testing.T
	steps *client.Stream[numbered]
	buys  *client.Stream[numbered]
	view  *client.SnapshotView[mover]

	next, bought int32
	sent         uint32
	unsent       int // calls that were refused

	mu        sync.Mutex
	received  []uint32 // messages
	events    []session.Event
	snapshots int
	lastTick  time.Time
	longest   time.Duration // without a snapshot
}

func (f *squad) join(t *testing.T, cfg client.Config) *traveler {
	g := &traveler{t: t}
	cfg.Network = f.network
	cfg.OnMessage = func(b []byte) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.received = append(g.received, binary.LittleEndian.Uint32(b))
	}
	cfg.OnEvent = func(e session.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.events = append(g.events, e)
	}
	var err error
	g.Conn, err = client.Dial(t.Context(), f.members[0].addr, cfg)
	uplinktest.Must(t, err)
	t.Cleanup(func() { uplinktest.Must(t, g.Close()) })
	g.steps, err = client.Bind[numbered](t.Context(), g.Conn, "Step", client.BindConfig{})
	uplinktest.Must(t, err)
	g.buys, err = client.Bind[numbered](t.Context(), g.Conn, "Buy", client.BindConfig{Reliable: true})
	uplinktest.Must(t, err)
	g.view, err = client.SubscribeSnapshots(t.Context(), g.Conn, "movers", client.SnapshotConfig[mover]{Handle: func(s *client.Snapshot[mover]) {
		for i := range s.Objects {
			if id, _ := client.SplitID(s.IDs[i]); s.Objects[i].Name != fmt.Sprint("m", id) {
				t.Errorf("object %d is %+v", id, s.Objects[i])
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.snapshots++; g.snapshots > 1 {
			g.longest = max(g.longest, s.Received.Sub(g.lastTick))
		}
		g.lastTick = s.Received
	}})
	uplinktest.Must(t, err)
	return g
}

// play sends a step, and every tenth time reliable calls and messages.
func (g *traveler) play() {
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
func (g *traveler) count(h session.Handover) (n int) {
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

// TestHandover hands players over again and again between three servers, over links with a
// round-trip time of 100 ms and 5 % packet loss. No call is wrong, no reliable call, message or
// request is lost or arrives twice, in either direction, and few calls are missing.
func TestHandover(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const clients, rounds, servers = 6, 12, 3
		f := newSquad(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.05, Jitter: 5 * ms, Seed: 21}), servers)
		var travelers []*traveler
		for range clients {
			travelers = append(travelers, f.join(t, client.Config{}))
		}
		settle(time.Second)
		ids := f.ids()
		if len(ids) != clients {
			t.Fatalf("%d players", len(ids))
		}
		told := map[uint64]uint32{} // messages to each client
		requests := make(chan error, 10_000)
		asked := 0
		where := map[uint64]int{}
		for i := range rounds * 120 {
			for k, g := range travelers {
				g.play()
				if (i+7*k)%40 == 0 {
					asked++
					go func() {
						want := fmt.Append(nil, i)
						b, err := g.Request(t.Context(), want)
						if err == nil && !bytes.Equal(b, want) {
							err = fmt.Errorf("the answer is %q", b)
						}
						requests <- err
					}()
				}
			}
			for k, id := range ids {
				p := f.player(id)
				if (i+k)%6 == 0 && p.SendReliable(binary.LittleEndian.AppendUint32(nil, told[id])) == nil {
					told[id]++
				}
				if (i+15*k)%120 == 60 {
					where[id] = (where[id] + 1 + k%(servers-1)) % servers
					v := f.at(p)
					cfg := ds.HandoverConfig{}
					if i%2 == 0 {
						cfg.Payload = streamData(fmt.Sprint(id), 100+i%60_000)
					}
					if i%3 == 0 {
						cfg.Tick = v.at.tick.Load() + 10
					}
					if f.members[where[id]] == v.at {
						where[id] = (where[id] + 1) % servers
					}
					uplinktest.Must(t, p.Handover(f.target(where[id]), cfg))
				}
			}
			time.Sleep(time.Second / 60)
		}
		settle(15 * time.Second)
		for range asked {
			if err := <-requests; err != nil {
				t.Errorf("a request: %v", err)
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.errors[:min(len(f.errors), 10)] {
			t.Error(e)
		}
		var missing []int
		var reliable, messages int
		for k, g := range travelers {
			if g.unsent > 0 {
				t.Errorf("%d calls were not sent", g.unsent)
			}
			if n, failed := g.count(session.HandoverCompleted), g.count(session.HandoverFailed); n != rounds || failed > 0 {
				t.Errorf("client %d: %d handovers completed, %d failed", k, n, failed)
			}
		}
		total := 0
		for _, id := range ids {
			last := int32(-1)
			var bought []int32
			var sent []uint32
			for i, v := range f.visits[id] {
				if !slices.IsSorted(v.reliable) || !slices.IsSorted(v.messages) {
					t.Error("reliable calls or messages are out of order")
				}
				bought, sent = append(bought, v.reliable...), append(sent, v.messages...)
				if len(v.steps) == 0 && i == len(f.visits[id])-1 {
					continue // the client had stopped
				}
				if i > 0 {
					missing = append(missing, int(slices.Min(v.steps)-last-1))
				}
				last = slices.Max(v.steps)
				total += len(v.steps)
			}
			reliable, messages = reliable+len(bought), messages+len(sent)
			once(t, "reliable calls", bought, int32(rounds*12))
			once(t, "messages", sent, uint32(rounds*12))
		}
		for _, g := range travelers {
			g.mu.Lock()
			ok := false
			for _, id := range ids {
				ok = ok || int(told[id]) == len(g.received)
			}
			if !ok {
				t.Errorf("%d messages to a client arrived, of %v", len(g.received), told)
			}
			once(t, "messages to a client", slices.Clone(g.received), uint32(len(g.received)))
			if g.longest > 300*ms {
				t.Errorf("%v without a snapshot", g.longest)
			}
			g.mu.Unlock()
		}
		slices.Sort(missing)
		if len(missing) < clients*(rounds-1) || missing[0] < 0 || missing[len(missing)*99/100] > 2 {
			t.Errorf("missing calls at %d handovers: %v", len(missing), missing)
		}
		t.Logf("%d calls, %d reliable ones, %d messages, %d requests; missing at %d handovers: median %d, 99th percentile %d, maximum %d",
			total, reliable, messages, asked, len(missing), missing[len(missing)/2], missing[len(missing)*99/100], missing[len(missing)-1])
		for _, err := range f.outcomes {
			if err != nil {
				t.Error(err)
			}
		}
		for _, err := range f.left {
			if !errors.Is(err, session.ErrHandedOver) {
				t.Errorf("left: %v", err)
			}
		}
	})
}

// TestHandoverStreams hands a player over while streams go in both directions: they continue at the
// first server.
func TestHandoverStreams(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		read := make(chan error, 10)
		receive := func(r session.StreamReader) {
			b, err := io.ReadAll(r)
			if err == nil && !bytes.Equal(b, streamData(r.Name(), 600_000)) {
				err = fmt.Errorf("%d bytes", len(b))
			}
			read <- err
		}
		f := newSquad(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.02, Seed: 5}), 2, func(c *ds.Config) {
			c.OnStream = func(_ *ds.Player, r session.StreamReader) { receive(r) }
		})
		g := f.join(t, client.Config{OnStream: receive})
		p := f.player(f.ids()[0])
		send := func(open func(context.Context, string) (session.StreamWriter, error), name string) {
			w, err := open(t.Context(), name)
			uplinktest.Must(t, err)
			go func() {
				_, err := w.Write(streamData(name, 600_000))
				read <- errors.Join(err, w.Close())
			}()
		}
		send(g.OpenStream, "up")
		send(p.OpenStream, "down")
		settle(200 * ms)
		uplinktest.Must(t, p.Handover(f.target(1), ds.HandoverConfig{Payload: []byte("state")}))
		settle(time.Second)
		if g.count(session.HandoverCompleted) != 1 || g.ID() == p.ID() {
			t.Error("it was not handed over")
		}
		for range 4 {
			if err := <-read; err != nil {
				t.Error(err)
			}
		}
		settle(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if !errors.Is(f.left[p], session.ErrHandedOver) || string(f.visits[p.ClientID()][1].payload) != "state" {
			t.Errorf("left: %v, payload %q", f.left[p], f.visits[p.ClientID()][1].payload)
		}
	})
}

// TestHandoverUnreachable hands a player over to a server that is not there, one that refuses its
// token, and one that drains. The player stays, without losing anything, and both ends learn of it.
func TestHandoverUnreachable(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		f := newSquad(t, linkedBy(t, 60*ms, simnet.Config{Loss: 0.02, Seed: 6}), 2)
		g := f.join(t, client.Config{})
		p := f.player(f.ids()[0])
		end := polling(t, time.Second/60, g.play)
		nowhere := ds.Target{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9999")}}
		foreign := f.target(1)
		foreign.Key = mustKey(t).Issuer()
		go func() { _ = f.members[1].Drain(t.Context(), nil) }()
		for i, target := range []ds.Target{nowhere, foreign, f.target(1)} {
			uplinktest.Must(t, p.Handover(target, ds.HandoverConfig{Payload: make([]byte, ds.MaxHandover)}))
			if err := p.Handover(target, ds.HandoverConfig{}); !errors.Is(err, session.ErrBacklog) {
				t.Errorf("a second handover: %v", err)
			}
			settle(10 * time.Second)
			f.mu.Lock()
			if err := f.outcomes[p]; !errors.Is(err, session.ErrHandover) {
				t.Errorf("outcome %v", err)
			}
			delete(f.outcomes, p)
			f.mu.Unlock()
			if n := g.count(session.HandoverFailed); n != i+1 || g.State() != session.Connected {
				t.Errorf("%d failed handovers, %v", n, g.State())
			}
		}
		end()
		settle(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		v := f.visits[p.ClientID()]
		if len(v) != 1 || g.unsent > 0 || g.ID() != p.ID() {
			t.Fatalf("%d visits, %d calls not sent", len(v), g.unsent)
		}
		once(t, "reliable calls", v[0].reliable, g.bought)
		once(t, "messages", v[0].messages, g.sent)
	})
}

// TestDrain drains one of three servers while everybody plays. Everybody is handed over, nobody can
// join any more, and no reliable call is lost.
func TestDrain(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const clients = 12
		f := newSquad(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.05, Seed: 7}), 3)
		var travelers []*traveler
		for range clients {
			g := f.join(t, client.Config{})
			travelers = append(travelers, g)
			polling(t, time.Second/60, g.play)
		}
		settle(time.Second)
		start, next := time.Now(), 0
		refused := make(chan error, 1)
		late := f.token(99)
		dial := func(to int) error {
			c, err := client.Dial(t.Context(), f.members[to].addr, client.Config{Network: f.network, NoReconnect: true, Token: late})
			if err == nil {
				t.Cleanup(func() { uplinktest.Must(t, c.Close()) })
			}
			return err
		}
		time.AfterFunc(100*ms, func() { refused <- dial(0) })
		uplinktest.Must(t, f.members[0].Drain(t.Context(), func(p *ds.Player) (ds.Target, ds.HandoverConfig, error) {
			if !f.members[0].Draining() {
				t.Error("it does not say so")
			}
			next++
			return f.target(1 + next%2), ds.HandoverConfig{Payload: []byte("state")}, nil
		}))
		t.Logf("drained in %v", time.Since(start))
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("drained in %v", d)
		}
		settle(time.Second)
		if err := <-refused; !errors.Is(err, session.ErrDraining) {
			t.Errorf("a client during the drain: %v", err)
		}
		f.mu.Lock()
		if len(f.visits) != clients {
			t.Errorf("%d clients joined", len(f.visits))
		}
		f.mu.Unlock()
		uplinktest.Must(t, dial(1)) // with the same token
		settle(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.visits, 99)
		for id, visits := range f.visits {
			if len(visits) != 2 || string(visits[1].payload) != "state" {
				t.Errorf("client %d has visited %d servers", id, len(visits))
			}
		}
		for _, g := range travelers {
			if g.unsent > 0 {
				t.Errorf("%d calls were not sent", g.unsent)
			}
		}
	})
}

func mustKey(t testing.TB) token.Key {
	t.Helper()
	k, err := token.NewKey()
	uplinktest.Must(t, err)
	return k
}
