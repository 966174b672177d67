//go:build native

package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// number is the argument of all RPCs and an object of the worlds.
type number struct {
	N float32 `uplink:"resolution=1"`
}

// Each server has three worlds with the same objects: "numbers" by snapshots, "movers" by state
// synchronization, and "town" with areas, of which players see area 1 with the even ids.
const worldObjects = 5

// serverTicks is the distance between the first ticks of two servers.
const serverTicks = 1_000_000

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
	addr                netip.AddrPort
	world, town, movers *ds.World[number]
	tick                atomic.Uint64
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
		s := f.start(fmt.Sprint("127.0.0.1:", 7777+i), uint64(i)*serverTicks)
		f.servers = append(f.servers, s)
	}
	return f
}

func (f *fleet) start(addr string, tick uint64) *fleetServer {
	s := &fleetServer{addr: netip.MustParseAddrPort(addr)}
	s.tick.Store(tick)
	var err error
	s.Server, err = ds.Listen(addr, ds.Config{
		Network: f.network,
		Joined: func(p *ds.Player) {
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
		Left: func(_ *ds.Player, err error) { f.locked(func() { f.left = append(f.left, err) }) },
		OnMessage: func(p *ds.Player, b []byte) {
			f.visit(p, func(v *visit) { v.messages = append(v.messages, int32(binary.LittleEndian.Uint32(b))) })
		},
		Hooks: ds.Hooks{
			Connected:  func(p *ds.Player) { uplinktest.Must(f.t, s.offer(p)) },
			HandedOver: func(_ *ds.Player, err error) { f.locked(func() { f.outcomes = append(f.outcomes, err) }) },
			OnRequest: func(r *ds.Request) {
				time.AfterFunc(150*time.Millisecond, func() { _ = r.Reply(r.Message) })
			},
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
	s.town, err = ds.NewWorld(s.Server, "town", ds.WorldConfig[number]{TickHz: 60, Areas: true})
	uplinktest.Must(f.t, err)
	s.movers, err = ds.NewWorld(s.Server, "movers", ds.WorldConfig[number]{TickHz: 60})
	uplinktest.Must(f.t, err)
	for id := range uint16(worldObjects) {
		uplinktest.Must(f.t, s.movers.Prioritize(id, 1))
	}
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

// offer offers all worlds to a player.
func (s *fleetServer) offer(p *ds.Player) error {
	_, err := s.world.Offer(p)
	town, err2 := s.town.Offer(p)
	if err2 == nil {
		town.See(1)
	}
	_, err3 := s.movers.OfferState(p, ds.StateConfig{})
	return errors.Join(err, err2, err3)
}

// step sends a tick of the worlds.
func (s *fleetServer) step() {
	tick := s.tick.Add(1)
	for _, w := range []*ds.World[number]{s.world, s.town, s.movers} {
		if w.Begin(tick) != nil {
			return
		}
		for i := range worldObjects {
			in := []area.ID{area.ID(1 + i%2)}
			if w != s.town {
				in = nil
			}
			_ = w.Put(uint16(i), 0, &number{N: float32(objectAt(i, tick))}, in...)
		}
		w.Commit()
		_, _ = w.Send()
	}
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

// steps returns the numbers of the unreliable calls that arrived, in ascending order, and how many
// are missing between the visits.
func (f *fleet) steps() (steps, missing []int) {
	last := -1
	for i, v := range f.visits {
		if len(v.steps) == 0 {
			f.t.Errorf("no calls at visit %d", i)
			continue
		}
		// Frames by sequence: those of a visit are consecutive numbers.
		for k, n := range v.steps {
			if n != v.steps[0]-int32(v.seqs[0])+int32(v.seqs[k]) {
				f.t.Errorf("visit %d: number %d with sequence %d", i, n, v.seqs[k])
			}
			steps = append(steps, int(n))
		}
		if i > 0 {
			missing = append(missing, int(slices.Min(v.steps))-last-1)
		}
		last = int(slices.Max(v.steps))
	}
	slices.Sort(steps)
	return steps, missing
}

// reliable returns the numbers of the reliable calls and messages that arrived.
func (f *fleet) reliable() (calls, messages []int32) {
	for _, v := range f.visits {
		if !slices.IsSorted(v.reliable) || !slices.IsSorted(v.messages) {
			f.t.Error("reliable calls or messages are out of order")
		}
		calls, messages = append(calls, v.reliable...), append(messages, v.messages...)
	}
	return calls, messages
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
