package ds_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestHandoverAgain hands players over by a server that they have just joined, before they have
// switched to it: it drains. They switch twice, and lose nothing.
func TestHandoverAgain(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const clients = 8
		var f *squad
		onward := make(chan error, 2*clients)
		f = newSquad(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.05, Seed: 3}), 3, func(c *ds.Config) {
			joined := c.Joined
			c.Joined = func(p *ds.Player) {
				joined(p)
				if v := f.at(p); v.at == f.members[1] {
					onward <- p.Handover(f.target(2), ds.HandoverConfig{Payload: fmt.Append(nil, "again")})
				}
			}
		})
		var travelers []*traveler
		for range clients {
			g := f.join(t, client.Config{})
			travelers = append(travelers, g)
			polling(t, time.Second/60, g.play)
		}
		settle(time.Second)
		for _, id := range f.ids() {
			p := f.player(id)
			if err := p.Handover(f.target(1), ds.HandoverConfig{Payload: []byte("first")}); err != nil {
				t.Error(err)
			}
			if err := p.Handover(f.target(1), ds.HandoverConfig{}); !errors.Is(err, session.ErrBacklog) {
				t.Errorf("while one is pending: %v", err)
			}
		}
		settle(20 * time.Second)
		for range clients {
			if err := <-onward; err != nil {
				t.Error(err)
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for id, visits := range f.visits {
			if len(visits) != 3 || visits[2].at != f.members[2] || string(visits[2].payload) != "again" {
				t.Errorf("client %d has visited %d servers", id, len(visits))
			}
		}
		for k, g := range travelers {
			for _, e := range g.events {
				if e.Err != nil || e.Handover == session.HandoverFailed {
					t.Errorf("client %d: %+v", k, e)
				}
			}
			if g.unsent > 0 {
				t.Errorf("client %d: %d calls were not sent", k, g.unsent)
			}
		}
		for p, err := range f.left {
			if !errors.Is(err, session.ErrHandedOver) {
				t.Errorf("player %d left: %v", p.ID(), err)
			}
		}
	})
}

// TestHandedOver hands a player over who has switched already, and whose session lingers.
func TestHandedOver(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var f *squad
		again := make(chan error, 1)
		f = newSquad(t, linkedBy(t, 100*ms, simnet.Config{}), 2, func(c *ds.Config) {
			c.Hooks.HandedOver = func(p *ds.Player, err error) {
				if err == nil {
					err = p.Handover(f.target(1), ds.HandoverConfig{})
				}
				again <- err
			}
		})
		f.join(t, client.Config{})
		settle(time.Second)
		if err := f.player(f.ids()[0]).Handover(f.target(1), ds.HandoverConfig{}); err != nil {
			t.Fatal(err)
		}
		if err := <-again; !errors.Is(err, session.ErrHandedOver) {
			t.Errorf("handed over again: %v", err)
		}
	})
}

// TestHandoverBack hands players over between two servers as soon as they have joined, back to one
// where their earlier session is not over. A handover whose hellos or answers are lost is repeated.
// No message to them is lost or arrives twice.
func TestHandoverBack(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const clients, visits = 6, 8
		var f *squad
		f = newSquad(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.15, Seed: 4}), 2, func(c *ds.Config) {
			joined := c.Joined
			back := func(p *ds.Player) {
				f.mu.Lock()
				n := len(f.visits[p.ClientID()])
				f.mu.Unlock()
				if n > 1 && n < visits {
					if err := p.Handover(f.target(n%2), ds.HandoverConfig{Payload: []byte("back")}); err != nil {
						t.Error(err)
					}
				}
			}
			c.Joined = func(p *ds.Player) {
				joined(p)
				back(p)
			}
			c.Hooks.HandedOver = func(p *ds.Player, err error) {
				if errors.Is(err, session.ErrHandover) {
					back(p)
				}
			}
		})
		var travelers []*traveler
		for range clients {
			g := f.join(t, client.Config{})
			travelers = append(travelers, g)
			polling(t, time.Second/60, g.play)
		}
		settle(time.Second)
		for _, id := range f.ids() {
			if err := f.player(id).Handover(f.target(1), ds.HandoverConfig{}); err != nil {
				t.Error(err)
			}
		}
		told := map[uint64]uint32{}
		for range 400 {
			settle(20 * ms)
			f.mu.Lock()
			for id, all := range f.visits {
				for _, v := range all { // also those that the client is leaving
					if v.player.SendReliable(binary.LittleEndian.AppendUint32(nil, told[id])) == nil {
						told[id]++
					}
				}
			}
			f.mu.Unlock()
		}
		settle(20 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		for id, all := range f.visits {
			if len(all) != visits {
				t.Errorf("client %d has visited %d servers", id, len(all))
			}
		}
		for p, err := range f.left {
			if !errors.Is(err, session.ErrHandedOver) {
				t.Errorf("player %d left: %v", p.ID(), err)
			}
		}
		for _, g := range travelers {
			want := slices.Collect(maps.Values(told))
			if n := uint32(len(g.received)); !slices.Contains(want, n) {
				t.Errorf("%d messages to a client arrived, of %v", n, want)
			}
			once(t, "messages to a client", g.received, uint32(len(g.received)))
		}
	})
}
