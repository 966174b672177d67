package ds_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestHandoverModes hands players over between servers whose game polls, which have several shards,
// and whose world is offered as state, with payloads of several sizes.
func TestHandoverModes(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   ds.Config
		state bool
	}{
		"poll":   {cfg: ds.Config{Poll: true}},
		"shards": {cfg: ds.Config{Transport: ds.Transport{Shards: 3}}},
		"state":  {state: true},
		"all":    {cfg: ds.Config{Poll: true, Transport: ds.Transport{Shards: 3}}, state: true},
	} {
		bubble(t, name, func(t *testing.T) {
			const clients, rounds = 4, 2
			f := newSquad(t, linkedBy(t, 80*ms, simnet.Config{Loss: 0.03, Jitter: 4 * ms, Seed: 31}), 0)
			f.state = c.state
			for i := range 2 {
				f.add(fmt.Sprint("127.0.0.1:", 7777+i), func(cfg *ds.Config) { cfg.Poll, cfg.Transport.Shards = c.cfg.Poll, c.cfg.Transport.Shards })
			}
			var travelers []*traveler
			for range clients {
				g := f.join(t, client.Config{})
				travelers = append(travelers, g)
				defer polling(t, time.Second/60, g.play)()
			}
			settle(500 * ms)
			ids := f.ids()
			sizes := []int{0, 1, 1000, ds.MaxHandover}
			for round := range rounds {
				for k, id := range ids {
					payload := streamData(fmt.Sprint(id, round), sizes[(round+k)%len(sizes)])
					uplinktest.Must(t, f.player(id).Handover(f.target((round+1)%2), ds.HandoverConfig{Payload: payload}))
				}
				settle(3 * time.Second)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, e := range f.errors {
				t.Error(e)
			}
			for k, id := range ids {
				visits := f.visits[id]
				if len(visits) != rounds+1 {
					t.Fatalf("client %d: %d visits", id, len(visits))
				}
				var reliable []int32
				var messages []uint32
				for i, v := range visits {
					if i > 0 && !bytes.Equal(v.payload, streamData(fmt.Sprint(id, i-1), sizes[(i-1+k)%len(sizes)])) {
						t.Errorf("client %d, visit %d: a payload of %d bytes", id, i, len(v.payload))
					}
					if i > 0 && slices.Min(v.steps) > slices.Max(visits[i-1].steps)+3 {
						t.Errorf("client %d: calls are missing at handover %d", id, i)
					}
					reliable, messages = append(reliable, v.reliable...), append(messages, v.messages...)
				}
				once(t, "reliable calls", reliable, int32(len(reliable)))
				once(t, "messages", messages, uint32(len(messages)))
			}
			for _, g := range travelers {
				g.mu.Lock()
				if g.longest > 400*ms || g.unsent > 0 || g.snapshots < 100 {
					t.Errorf("%v without the world, %d calls not sent, %d updates", g.longest, g.unsent, g.snapshots)
				}
				g.mu.Unlock()
			}
		})
	}
}

// TestHandoverRefused calls Handover with what it refuses. The player plays on, and can be handed
// over afterwards.
func TestHandoverRefused(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		f := newSquad(t, linkedBy(t, 20*ms, simnet.Config{}), 2)
		g := f.join(t, client.Config{})
		settle(time.Second)
		p := f.player(f.ids()[0])
		refused := func(to ds.Target, cfg ds.HandoverConfig) error { return p.Handover(to, cfg) }
		wantErrors(t, fmt.Sprintf("ds: hand over player %d: ", p.ID()), map[string]error{
			"a payload of 65537 bytes, at most 65536": refused(f.target(1), ds.HandoverConfig{Payload: make([]byte, ds.MaxHandover+1)}),
			"Servers: 0 addresses, want 1 to 8":       refused(ds.Target{}, ds.HandoverConfig{}),
			"tick 9007199254740992, at most":          refused(f.target(1), ds.HandoverConfig{Tick: 1 << 53}),
			"not subscribed to a world other":         refused(f.target(1), ds.HandoverConfig{Tick: 1, World: "other"}),
			"UserData: 300 bytes, at most 256":        refused(f.target(1), ds.HandoverConfig{UserData: make([]byte, 300)}),
		})
		settle(time.Second)
		if g.count(session.HandoverStarted) > 0 || g.ID() != p.ID() {
			t.Error("a handover began")
		}
		uplinktest.Must(t, p.Handover(f.target(1), ds.HandoverConfig{Payload: make([]byte, ds.MaxHandover)}))
		settle(3 * time.Second)
		if g.count(session.HandoverCompleted) != 1 {
			t.Error("it was not handed over")
		}
	})
}
