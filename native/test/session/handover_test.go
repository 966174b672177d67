//go:build native

package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// number is the argument of all RPCs and an object of the world.
type number struct {
	N float32 `uplink:"resolution=1"`
}

const worldObjects = 5

// objectAt is the number of an object at a tick.
func objectAt(id int, tick uint64) int32 { return int32(tick*7%10_000) + int32(id) }

// fleet is the servers of a game, and what they received from its only player.
type fleet struct {
	t       *testing.T
	network *uplinktest.Network
	servers []*fleetServer

	mu       sync.Mutex
	player   *ds.Player // the newest one
	visits   []*visit
	outcomes []error // of handovers
	left     []error
	wrong    int // messages of another player
}

type fleetServer struct {
	*ds.Server
	addr  netip.AddrPort
	world *ds.World[number]
	tick  atomic.Uint64
}

// visit is what the player did at one server.
type visit struct {
	player   *ds.Player
	at       *fleetServer
	payload  []byte
	seqs     []uint64
	steps    []int32
	reliable []int32
	messages []int32
	notes    *ds.Stream[number]
}

func newFleet(t *testing.T, count int, link simnet.Config) *fleet {
	down := link
	down.Seed++
	f := &fleet{t: t, network: uplinktest.NewNetwork(t, link, down)}
	for i := range count {
		f.servers = append(f.servers, f.start(fmt.Sprint("127.0.0.1:", 7777+i)))
	}
	return f
}

func (f *fleet) start(addr string) *fleetServer {
	s := &fleetServer{addr: netip.MustParseAddrPort(addr)}
	var err error
	s.Server, err = ds.Listen(addr, ds.Config{
		Network: f.network,
		Joined: func(p *ds.Player) {
			_, err := s.world.Offer(p)
			uplinktest.Must(f.t, err)
			v := &visit{player: p, at: s, payload: p.HandoverPayload()}
			f.mu.Lock()
			f.player, f.visits = p, append(f.visits, v)
			f.mu.Unlock()
			go func() {
				notes, err := ds.Bind[number](p, "Note", ds.BindConfig{Reliable: true})
				f.mu.Lock()
				defer f.mu.Unlock()
				if v.notes = notes; err != nil && !errors.Is(err, context.Canceled) {
					f.t.Log(err)
				}
			}()
		},
		Left:       func(_ *ds.Player, err error) { f.locked(func() { f.left = append(f.left, err) }) },
		HandedOver: func(_ *ds.Player, err error) { f.locked(func() { f.outcomes = append(f.outcomes, err) }) },
		OnMessage: func(p *ds.Player, b []byte) {
			f.visit(p, func(v *visit) { v.messages = append(v.messages, int32(binary.LittleEndian.Uint32(b))) })
		},
		OnRequest: func(r *ds.Request) {
			time.AfterFunc(150*time.Millisecond, func() { _ = r.Reply(r.Message) })
		},
	})
	uplinktest.Must(f.t, err)
	uplinktest.Must(f.t, ds.Handle(s.Server, "Step", func(p *ds.Player, fr ds.Frame[number]) {
		f.visit(p, func(v *visit) {
			v.seqs, v.steps = append(v.seqs, fr.Seq), append(v.steps, int32(fr.Value.N))
		})
	}))
	uplinktest.Must(f.t, ds.Handle(s.Server, "Buy", func(p *ds.Player, fr ds.Frame[number]) {
		f.visit(p, func(v *visit) { v.reliable = append(v.reliable, int32(fr.Value.N)) })
	}))
	s.world, err = ds.NewWorld(s.Server, "numbers", ds.WorldConfig[number]{TickHz: 60})
	uplinktest.Must(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(ctx) })
	work.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(time.Second / 60)
			s.step()
		}
	})
	f.t.Cleanup(func() { cancel(); _ = s.Close(); work.Wait() })
	return s
}

// step sends a tick of the world.
func (s *fleetServer) step() {
	tick := s.tick.Add(1)
	if s.world.Begin(tick) != nil {
		return
	}
	for i := range worldObjects {
		_ = s.world.Put(uint16(i), 0, &number{N: float32(objectAt(i, tick))})
	}
	s.world.Commit()
	_, _ = s.world.Send()
}

func (f *fleet) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fleet) visit(p *ds.Player, do func(*visit)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.visits {
		if v.player == p {
			do(v)
			return
		}
	}
	f.wrong++
}

func (f *fleet) target(i int) ds.Target {
	return ds.Target{Addrs: []netip.AddrPort{f.servers[i].addr}}
}

func (f *fleet) token(i int) string {
	f.t.Helper()
	now := time.Now()
	tok, err := token.Issue(token.Development().Issuer(), token.Claims{
		ClientID: 7, Issued: now, Expires: now.Add(time.Minute), Servers: []netip.AddrPort{f.servers[i].addr},
	})
	uplinktest.Must(f.t, err)
	text, err := tok.MarshalText()
	uplinktest.Must(f.t, err)
	return string(text)
}

// nativePlayer is a client of the library that plays.
type nativePlayer struct {
	*native
	f *fleet

	bound     map[int]bool
	stepped   int32 // Step calls
	bought    int32 // Buy calls
	sent      int32 // messages
	unsent    int
	asked     map[uint32][]byte
	answered  int
	received  []int32 // messages of servers
	notes     []int32 // calls of servers
	handovers []event
	others    []event // but those of RPCs, worlds and messages
	silent    int
	snapshots int
	newest    time.Time
	longest   time.Duration // without a snapshot
	problems  []string
}

func (f *fleet) join() *nativePlayer {
	f.t.Helper()
	c, err := newNative(f.network, f.servers[0].addr)
	uplinktest.Must(f.t, err)
	f.t.Cleanup(c.close)
	g := &nativePlayer{native: c, f: f, bound: map[int]bool{}, asked: map[uint32][]byte{}}
	uplinktest.Must(f.t, errors.Join(c.bind("Step", false), c.bind("Buy", true), c.handle("Note"), c.subscribe("numbers"), c.connect(f.token(0))))
	g.wait(2 * time.Second)
	if len(g.bound) != 2 || g.snapshots == 0 {
		f.t.Fatalf("%v bound, %d snapshots", g.bound, g.snapshots)
	}
	return g
}

// wait runs the client for a time.
func (g *nativePlayer) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		g.run(g.take)
		time.Sleep(2 * time.Millisecond)
	}
	synctest.Wait()
}

func (g *nativePlayer) take(e *event) {
	switch e.kind {
	case eventBound:
		g.bound[e.rpc] = true
	case eventMessage:
		g.received = append(g.received, int32(binary.LittleEndian.Uint32(e.data)))
	case eventServerCall:
		g.notes = append(g.notes, e.number)
	case eventAnswer:
		id := uint32(e.value)
		if e.status != 2 || !bytes.Equal(e.data, g.asked[id]) {
			g.problems = append(g.problems, fmt.Sprintf("answer %q with status %d to %q", e.data, e.status, g.asked[id]))
		}
		delete(g.asked, id)
		g.answered++
	case eventWorldUpdate:
		tick, objects := g.snapshot()
		for i, v := range objects {
			if v != objectAt(i, tick) {
				g.problems = append(g.problems, fmt.Sprintf("object %d is %d at tick %d", i, v, tick))
			}
		}
		if len(objects) != worldObjects {
			g.problems = append(g.problems, fmt.Sprintf("%d objects at tick %d", len(objects), tick))
		}
		if g.snapshots++; g.snapshots > 1 {
			g.longest = max(g.longest, time.Since(g.newest))
		}
		g.newest = time.Now()
	case eventHandover:
		g.handovers = append(g.handovers, *e)
	case eventSilent:
		g.silent++
	case eventConnected, eventReconnecting, eventDisconnected, eventBindFailed:
		g.others = append(g.others, *e)
	}
}

// play plays for a tick.
func (g *nativePlayer) play() {
	if g.call(0, g.stepped) == nil {
		g.stepped++
	} else {
		g.unsent++
	}
	if g.stepped%10 == 0 {
		if g.call(1, g.bought) == nil {
			g.bought++
		}
		if g.send(uint32(g.sent)) == nil {
			g.sent++
		}
	}
	if g.stepped%40 == 0 {
		body := fmt.Append(nil, g.stepped)
		if id, err := g.request(body); err == nil {
			g.asked[id] = body
		}
	}
	g.wait(time.Second / 60)
}

// outcome returns the status of the last handover, and why it failed.
func (g *nativePlayer) outcome() (status int, reason string) {
	if len(g.handovers) == 0 {
		return -1, ""
	}
	e := g.handovers[len(g.handovers)-1]
	return e.status, reasonText(e.reason)
}

func once(t *testing.T, what string, got []int32, n int32) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if len(got) != int(n) {
		t.Errorf("%s: %d arrived, %d were sent", what, len(got), n)
	}
	for i, v := range got {
		if v != int32(i) {
			t.Errorf("%s: number %d at %d", what, v, i)
			return
		}
	}
}

var handoverLink = simnet.Config{Delay: 50 * time.Millisecond, Loss: 0.1, Jitter: 5 * time.Millisecond, Seed: 21}

// A player of the native client is handed over between two servers, over links with 100 ms
// round-trip time and 10 % packet loss, in virtual time.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 12
		f := newFleet(t, 2, handoverLink)
		g := f.join()
		var told, noted int32 // messages and calls of servers
		for i := range rounds * 150 {
			g.play()
			f.mu.Lock()
			p, v := f.player, f.visits[len(f.visits)-1]
			notes := v.notes
			f.mu.Unlock()
			if i%6 == 0 && p.SendReliable(binary.LittleEndian.AppendUint32(nil, uint32(told))) == nil {
				told++
			}
			if i%7 == 0 && notes != nil {
				if _, err := notes.Send(&number{N: float32(noted)}); err == nil {
					noted++
				}
			}
			if i%150 == 60 {
				cfg := ds.HandoverConfig{}
				if i/150%2 == 0 {
					cfg.Payload = bytes.Repeat([]byte{byte(i), 1, 2, 3, 4}, (1+i*3%2000)/5+1)
				}
				if i/150%3 == 0 {
					cfg.Tick = v.at.tick.Load() + 10
				}
				to := 0
				if v.at == f.servers[0] {
					to = 1
				}
				uplinktest.Must(t, p.Handover(f.target(to), cfg))
			}
		}
		g.wait(15 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range g.problems[:min(len(g.problems), 10)] {
			t.Error(p)
		}
		completed := 0
		for _, e := range g.handovers {
			if e.status == 1 {
				completed++
			}
		}
		if completed != rounds || len(g.handovers) != 2*rounds || len(f.visits) != rounds+1 || g.unsent > 0 || len(g.others) != 1 || f.wrong > 0 {
			t.Errorf("%d of %d handovers completed, %d visits, %d calls not sent, %d sessions, %d messages of nobody: %+v", completed, rounds, len(f.visits), g.unsent, len(g.others), f.wrong, g.handovers)
		}
		var steps, missing []int
		var reliable, messages []int32
		last := -1
		for i, v := range f.visits {
			if !slices.IsSorted(v.reliable) || !slices.IsSorted(v.messages) {
				t.Error("reliable calls or messages are out of order")
			}
			reliable, messages = append(reliable, v.reliable...), append(messages, v.messages...)
			if len(v.steps) == 0 {
				t.Errorf("no calls at visit %d", i)
				continue
			}
			// Frames by sequence: those of a visit are consecutive numbers.
			for k, n := range v.steps {
				if n != v.steps[0]-int32(v.seqs[0])+int32(v.seqs[k]) {
					t.Errorf("visit %d: number %d with sequence %d", i, n, v.seqs[k])
				}
				steps = append(steps, int(n))
			}
			if i > 0 {
				missing = append(missing, int(slices.Min(v.steps))-last-1)
			}
			last = int(slices.Max(v.steps))
		}
		once(t, "reliable calls", reliable, g.bought)
		once(t, "messages", messages, g.sent)
		once(t, "messages of servers", g.received, told)
		once(t, "calls of servers", g.notes, noted)
		slices.Sort(steps)
		if distinct := len(slices.Compact(slices.Clone(steps))); distinct != len(steps) || distinct < int(g.stepped)*85/100 {
			t.Errorf("%d calls, %d distinct ones, of %d", len(steps), distinct, g.stepped)
		}
		if slices.Min(missing) < 0 || slices.Max(missing) > 4 || g.longest > 1500*time.Millisecond || len(g.asked) > 0 {
			t.Errorf("missing calls at handovers: %v; %v without a snapshot; %d requests without an answer", missing, g.longest, len(g.asked))
		}
		for _, err := range append(f.outcomes, f.left...) {
			if err != nil && !errors.Is(err, session.ErrHandedOver) {
				t.Error(err)
			}
		}
		t.Logf("%d calls of %d, %d reliable ones, %d messages, %d answers, %d messages and %d calls of servers; missing at handovers %v; at most %v without a snapshot",
			len(steps), g.stepped, g.bought, g.sent, g.answered, told, noted, missing, g.longest)
	})
}

// The player stays if the other server is not there, refuses its token, or gets another payload
// than its token promises. Nothing is lost.
func TestHandoverStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, handoverLink)
		g := f.join()
		key, err := token.NewKey()
		uplinktest.Must(t, err)
		foreign := f.target(1)
		foreign.Key = key.Issuer()
		nowhere := ds.Target{Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9999"), netip.MustParseAddrPort("127.0.0.1:9998")}}
		p := f.player
		for i, target := range []ds.Target{nowhere, foreign} {
			uplinktest.Must(t, p.Handover(target, ds.HandoverConfig{Payload: make([]byte, ds.MaxHandover)}))
			for range 22 * 60 {
				g.play()
			}
			status, reason := g.outcome()
			t.Logf("%s: %s", target.Addrs[0], reason)
			f.mu.Lock()
			if status != 2 || len(f.outcomes) != i+1 || !errors.Is(f.outcomes[i], session.ErrHandover) {
				t.Errorf("status %d, %v", status, f.outcomes)
			}
			f.mu.Unlock()
		}
		g.wait(3 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.visits) != 1 || g.unsent > 0 || len(g.others) != 1 || g.longest > 600*time.Millisecond {
			t.Errorf("%d visits, %d calls not sent, %d sessions, %v without a snapshot", len(f.visits), g.unsent, len(g.others), g.longest)
		}
		once(t, "reliable calls", f.visits[0].reliable, g.bought)
		once(t, "messages", f.visits[0].messages, g.sent)
	})
}

// A server falls silent. The client tells the program within 2 s, and continues at another one, for
// which the program has a token. If the server answers before, it stays.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, simnet.Config{Delay: 50 * time.Millisecond, Loss: 0.02, Seed: 4})
		g := f.join()
		silence := func() time.Duration {
			start, before := time.Now(), g.silent
			for g.silent == before && time.Since(start) < 5*time.Second {
				g.play()
			}
			return time.Since(start)
		}
		for range 60 {
			g.play()
		}
		first := f.servers[0].addr.String()
		f.network.Mute(first, true)
		if d := silence(); d > 2*time.Second {
			t.Errorf("told after %v", d)
		}
		f.network.Mute(first, false)
		uplinktest.Must(t, g.failover(f.servers[1].addr.String(), f.token(1)))
		for range 120 {
			g.play()
		}
		if status, reason := g.outcome(); status != 2 || reason != "the server answers again" {
			t.Errorf("status %d: %s", status, reason)
		}
		f.network.Mute(first, true)
		d := silence()
		uplinktest.Must(t, g.failover(f.servers[1].addr.String(), f.token(1)))
		for range 120 {
			g.play()
		}
		status, reason := g.outcome()
		t.Logf("told after %v", d)
		f.mu.Lock()
		defer f.mu.Unlock()
		if d > 2*time.Second || status != 1 || f.player.ClientID() != 7 || f.visits[len(f.visits)-1].at != f.servers[1] || len(f.visits[len(f.visits)-1].steps) == 0 {
			t.Errorf("told after %v, status %d: %s, %d visits", d, status, reason, len(f.visits))
		}
		if len(g.others) != 1 {
			t.Errorf("%+v", g.others)
		}
	})
}
