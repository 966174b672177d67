package ds

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/internal/uplinktest/entries"
	"github.com/uplink-rpc/uplink/internal/uplinktest/race"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// troupe is a reel that goes down as state, and players who ack each message some ticks later.
type troupe struct {
	reel
	players []*StateStream[cube]
	ack     []byte
	input   [1]statesync.Input
}

func newTroupe(t testing.TB, frames [][]cube, players int) *troupe {
	t.Helper()
	b := newBench(t, Config{}, func(*Player, Frame[testCall]) {})
	w, err := NewWorld(b.srv, "cubes", WorldConfig[cube]{})
	must(t, err)
	c := &troupe{reel: reel{t: t, frames: frames, world: w}, input: [1]statesync.Input{{Data: []byte{1, 2}}}}
	offered, err := w.stateTerms()
	must(t, err)
	for range players {
		// As much as there is time for: none passes here.
		d := c.join(b, &nowhere{}, func(p *Player) way {
			return &stateWay{world: &w.w, offered: offered, player: p, cfg: StateConfig{Bandwidth: mostBandwidth}}
		})
		c.players = append(c.players, &StateStream[cube]{w, d, d.way.(*stateWay)})
	}
	return c
}

// step makes a tick, sends it, and acks an older one.
func (c *troupe) step() {
	frame := c.next()
	for _, s := range c.players {
		o := s.down.outlet.(*stateOutlet)
		o.left = o.left.Add(-time.Second / 60) // a tick has passed
		must(c.t, s.AddInputs(c.tick, c.input[:]...))
		for i := range frame {
			must(c.t, s.Prioritize(uint16(i), 1))
		}
	}
	c.send(len(c.players))
	if c.tick <= ackedAfter {
		return
	}
	newest := c.tick - 1 - ackedAfter // packets count from 0
	a := statesync.Ack{Newest: uint16(newest), Window: 1<<min(newest, 63) - 1}
	c.ack = a.Append(append(c.ack[:0], 0))
	for _, s := range c.players {
		s.down.player.receiveDownAck(c.ack, time.Time{})
	}
}

// TestStateAllocatesNothing: a tick for many, and taking acks.
func TestStateAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	c := newTroupe(t, few(t), 9)
	for range 300 {
		c.step()
	}
	if n := testing.AllocsPerRun(100, c.step); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
	if st := c.world.Stats(); st.Acked != 9*(c.tick-ackedAfter) || st.InvalidAcks != 0 || st.BaselineAge != ackedAfter+1 || st.Resets != 0 {
		t.Errorf("%d ticks, counted %+v", c.tick, st)
	}
}

// TestBadStateAcks: what no honest client acks is refused and counted, and helps nobody.
func TestBadStateAcks(t *testing.T) {
	c := newTroupe(t, few(t), 2)
	for range 20 {
		c.step()
	}
	liar, honest := c.players[0].down, c.players[1].down
	before := honest.counted()
	ack := func(epoch uint8, newest uint16, window uint64) []byte {
		a := statesync.Ack{Epoch: epoch, Newest: newest, Window: window}
		return a.Append([]byte{0})
	}
	for name, b := range map[string][]byte{
		"nothing":          {0},
		"the future":       ack(0, 20, 0),
		"far":              ack(0, 40_000, 0),
		"more than an ack": append(ack(0, 19, 0), 0),
		"cut":              ack(0, 19, 5)[:4],
		"too long":         append([]byte{0}, bytes.Repeat([]byte{1}, control.MaxDownAck+1)...),
		"a long window":    {0, 9 << 2, 0, 19, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		"no such world":    append([]byte{1}, ack(0, 19, 0)[1:]...),
	} {
		st := liar.player.Stats()
		liar.player.receive(append([]byte{byte(control.DownAck)}, b...), time.Time{}, false)
		if got := liar.player.Stats(); sum(got.Drops) != sum(st.Drops)+1 {
			t.Errorf("%s: %v, before it %v", name, got.Drops, st.Drops)
		}
	}
	if st := liar.counted(); st.InvalidAcks != liar.player.Stats().Drops[InvalidAck] || st.InvalidAcks < 6 {
		t.Errorf("%+v, %v", st, liar.player.Stats().Drops)
	}
	// Of another epoch: it may be late.
	liar.player.receive(append([]byte{byte(control.DownAck)}, ack(7, 19, 0)...), time.Time{}, false)
	c.step()
	if st := honest.counted(); st.Messages != before.Messages+1 || st.BaselineAge != ackedAfter+1 || sum(honest.player.Stats().Drops) != 0 {
		t.Errorf("the honest player's: %+v", st)
	}
	// A new start that is asked for is one, and no more than that.
	a := statesync.Ack{Reset: true, Newest: 15}
	liar.player.receive(a.Append([]byte{byte(control.DownAck), 0}), time.Time{}, false)
	c.step()
	if st := liar.counted(); st.Resets != 1 || st.BaselineAge != 0 {
		t.Errorf("after a new start: %+v", st)
	}
}

// FuzzStateDown throws messages at a player to whom state is sent, as FuzzDown does for snapshots. The other player's
// goes on.
func FuzzStateDown(f *testing.F) {
	frames := few(f)
	for _, a := range []statesync.Ack{{Newest: 9, Window: 1<<9 - 1}, {None: true, Reset: true}, {Reset: true, Epoch: 1, Newest: 9}, {Newest: 65_535}} {
		f.Add(entries.Of(a.Append([]byte{byte(control.DownAck), 0}), false))
	}
	for _, a := range []control.Answer{control.Refused, control.Send, control.Ready} {
		reply := entries.Of(control.AppendReply(nil, 0, a), true)
		f.Add(append(reply, reply...))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c := newTroupe(t, frames, 2)
		for range 10 {
			c.step()
		}
		hostile, honest := c.players[0].down, c.players[1].down
		for msg, reliable := range entries.All(in) {
			hostile.player.receive(msg, time.Time{}, reliable)
		}
		if st := hostile.counted(); st.Ready == 0 || st.Messages == 0 { // it left
			c.players = c.players[1:]
			hostile.stop()
		}
		before := honest.counted().Messages
		for range 70 { // more than a ring
			c.step()
		}
		if st := honest.counted(); st.Messages != before+70 || st.BaselineAge != ackedAfter+1 {
			t.Fatalf("the honest player's: %+v", st)
		}
	})
}

// hostileAcks are the acks of clients that know what was sent, and say of it what they like.
var hostileAcks = []struct {
	name  string
	state func(newest uint64, epoch uint8) statesync.Ack
	snap  func(newest uint64) snapshot.Ack
}{
	{
		"none", func(uint64, uint8) statesync.Ack { return statesync.Ack{None: true} },
		func(uint64) snapshot.Ack { return snapshot.Ack{None: true} },
	},
	{
		"holes that move", func(n uint64, epoch uint8) statesync.Ack {
			return statesync.Ack{Epoch: epoch, Newest: uint16(n), Window: n * 0x9e3779b97f4a7c15 & (1<<min(n, 63) - 1)}
		}, func(n uint64) snapshot.Ack {
			return snapshot.Ack{Newest: uint16(n), Window: n * 0x9e3779b97f4a7c15 & (1<<min(n, 63) - 1)}
		},
	},
	{
		"new starts", func(n uint64, epoch uint8) statesync.Ack {
			return statesync.Ack{Epoch: epoch, Reset: n%2 == 0, Newest: uint16(n)}
		}, func(n uint64) snapshot.Ack { return snapshot.Ack{Epoch: uint8(n), Newest: uint16(n)} },
	},
	{
		"the oldest", func(n uint64, epoch uint8) statesync.Ack {
			return statesync.Ack{Epoch: epoch, Newest: uint16(n - min(n, 50))}
		}, func(n uint64) snapshot.Ack { return snapshot.Ack{Newest: uint16(n - min(n, 50))} },
	},
}

// TestHostileAcksMemory checks that what a server keeps of what it sent to a player stays the same,
// whatever the player acks.
func TestHostileAcksMemory(t *testing.T) {
	const players, slack = 4, 16 << 10
	// step sends a tick and gives the acks of the tick before.
	type world struct {
		step func()
		all  any
	}
	run := func(t *testing.T, w world) {
		measure := func(ticks int) int64 {
			for range ticks {
				w.step()
			}
			return heap()
		}
		before := measure(500)
		if after := measure(3000); after > before+players*slack {
			t.Errorf("%d bytes are kept, before %d", after, before)
		}
		runtime.KeepAlive(w.all)
	}
	for _, h := range hostileAcks {
		t.Run(h.name, func(t *testing.T) {
			c := newCrowd(t, few(t), players)
			run(t, world{all: c, step: func() {
				c.next()
				c.send(players)
				a := h.snap(c.tick - 1)
				c.ack = a.Append(append(c.ack[:0], 0))
				for _, d := range c.players {
					d.player.receiveDownAck(c.ack, time.Time{})
				}
			}})
			s := newTroupe(t, few(t), players)
			run(t, world{all: s, step: func() {
				frame := s.next()
				for _, p := range s.players {
					o := p.down.outlet.(*stateOutlet)
					o.left = o.left.Add(-time.Second / 60) // a tick has passed
					must(t, p.AddInputs(s.tick, s.input[:]...))
					for i := range frame {
						must(t, p.Prioritize(uint16(i), 1))
					}
				}
				s.send(players)
				for _, p := range s.players {
					_, epoch := p.down.outlet.(*stateOutlet).sender.Next()
					a := h.state(s.tick-1, epoch-64)
					s.ack = a.Append(append(s.ack[:0], 0))
					p.down.player.receiveDownAck(s.ack, time.Time{})
				}
			}})
		})
	}
}
