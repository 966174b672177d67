//go:build native

package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// handoverLink loses 10 %. There, one of 140 handovers fails because its 3 hellos or the answers
// are lost. The client then stays.
var handoverLink = simnet.Config{Delay: 50 * time.Millisecond, Loss: 0.1, Jitter: 5 * time.Millisecond, Seed: 26}

// A player of the native client is handed over between two servers, over links with 100 ms
// round-trip time and 10 % packet loss, in virtual time.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds = 12
		f := newFleet(t, 2, handoverLink)
		g := f.join()
		var told, noted int32 // messages and calls of servers
		const interval = 240  // calls from a handover to the next one
		for i := range rounds*interval + interval/2 {
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
			if i%interval == 60 && i < rounds*interval {
				cfg := ds.HandoverConfig{}
				if i/interval%2 == 0 {
					cfg.Payload = bytes.Repeat([]byte{byte(i), 1, 2, 3, 4}, (1+i*3%2000)/5+1)
				}
				if i/interval%3 == 0 {
					cfg.Tick, cfg.World = v.at.tick.Load()+10, []string{"numbers", "town", "movers"}[i/interval/3%3]
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
		if completed < rounds-1 || len(g.handovers) != 2*rounds || len(f.visits) != completed+1 || g.unsent > 0 || len(g.others) != 1 || f.wrong > 0 {
			t.Errorf("%d of %d handovers completed, %d visits, %d calls not sent, %d sessions, %d messages of nobody: %+v", completed, rounds, len(f.visits), g.unsent, len(g.others), f.wrong, g.handovers)
		}
		steps, missing := f.steps()
		reliable, messages := f.reliable()
		once(t, "reliable calls", reliable, g.bought)
		once(t, "messages", messages, g.sent)
		once(t, "messages of servers", g.received, told)
		once(t, "calls of servers", g.notes, noted)
		if distinct := len(slices.Compact(slices.Clone(steps))); distinct != len(steps) || distinct < int(g.stepped)*85/100 {
			t.Errorf("%d calls, %d distinct ones, of %d", len(steps), distinct, g.stepped)
		}
		if slices.Min(missing) < 0 || slices.Max(missing) > 4 || g.longest() > 3*time.Second || len(g.asked) > 0 {
			t.Errorf("missing calls at handovers: %v; %d requests without an answer", missing, len(g.asked))
		}
		for i, w := range g.worlds {
			if w.switches != completed || w.updates < 600 {
				t.Errorf("world %d: %+v", i, w)
			}
		}
		if g.stale > 3*g.worlds[1].updates/20 {
			t.Errorf("%d old objects in %d updates", g.stale, g.worlds[1].updates)
		}
		failed := 0
		for _, err := range append(f.outcomes, f.left...) {
			if err != nil && !errors.Is(err, transport.ErrHandedOver) {
				failed++
				t.Log(err)
			}
		}
		if failed != rounds-completed {
			t.Errorf("%d handovers failed at the servers, want %d", failed, rounds-completed)
		}
		t.Logf("%d calls of %d, %d reliable ones, %d messages, %d answers, %d messages and %d calls of servers; missing at handovers %v; at most %v without an update of worlds %+v",
			len(steps), g.stepped, g.bought, g.sent, g.answered, told, noted, missing, g.longest(), g.worlds)
	})
}

// A player of the native client plays for a minute, or as -for says, over a link with 100 ms
// round-trip time and 10 % packet loss, in virtual time. Its port changes after a third of the
// time, and the server restarts after two thirds.
func TestPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, handoverLink)
		g := f.join()
		third := max(*duration, time.Minute) / 3
		play := func() {
			for begun := time.Now(); time.Since(begun) < third; g.play() {
				if last := g.others[len(g.others)-1].kind; last == eventReconnecting {
					g.others = append(g.others, event{kind: -1}) // once
					uplinktest.Must(t, g.connect(f.token(0)))
				}
			}
		}
		play()
		uplinktest.Must(t, g.rebind())
		play()
		before := len(f.visits)
		_ = f.servers[0].Close()
		f.servers[0] = f.start(f.servers[0].addr.String(), serverTicks)
		play()
		g.wait(2 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range g.problems[:min(len(g.problems), 10)] {
			t.Error(p)
		}
		steps, missing := f.steps()
		reliable, messages := f.reliable()
		t.Logf("%d calls of %d, %d reliable ones of %d, %d messages of %d; missing at the restart %v; %d old objects; worlds %+v",
			len(steps), g.stepped, len(reliable), g.bought, len(messages), g.sent, missing, g.stale, g.worlds)
		if before != 1 || len(f.visits) != 2 || f.wrong > 0 {
			t.Errorf("%d sessions before the restart, %d with it, %d messages of nobody: %+v", before, len(f.visits), f.wrong, g.others)
		}
		if distinct := len(slices.Compact(slices.Clone(steps))); distinct != len(steps) || distinct < int(g.stepped)*85/100 {
			t.Errorf("%d calls, %d distinct ones, of %d", len(steps), distinct, g.stepped)
		}
		// What was on its way when the server ended is lost.
		if len(slices.Compact(reliable)) != len(reliable) || len(reliable) < int(g.bought)-20 || len(messages) < int(g.sent)-20 {
			t.Errorf("%d reliable calls of %d, %d messages of %d", len(reliable), g.bought, len(messages), g.sent)
		}
		for i, w := range g.worlds {
			if w.switches != 1 || w.updates < 600 {
				t.Errorf("world %d: %+v", i, w)
			}
		}
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
			if status != 2 || len(f.outcomes) != i+1 || !errors.Is(f.outcomes[i], transport.ErrHandover) {
				t.Errorf("status %d, %v", status, f.outcomes)
			}
			f.mu.Unlock()
		}
		g.wait(3 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.visits) != 1 || g.unsent > 0 || len(g.others) != 1 || g.longest() > 600*time.Millisecond {
			t.Errorf("%d visits, %d calls not sent, %d sessions, %v without an update", len(f.visits), g.unsent, len(g.others), g.longest())
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
		uplinktest.Must(t, g.assign(f.servers[1].addr.String(), f.token(1)))
		for range 120 {
			g.play()
		}
		if status, reason := g.outcome(); status != 2 || reason != "the server answers again" {
			t.Errorf("status %d: %s", status, reason)
		}
		f.network.Mute(first, true)
		d := silence()
		uplinktest.Must(t, g.assign(f.servers[1].addr.String(), f.token(1)))
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

// A server dies together with others, which the backend assigns first; or the one that it assigns
// first answers late, and the next one is dead. The client plays on a server within 3 s, and begins
// no session at another one.
func TestDeadServers(t *testing.T) {
	for _, c := range []struct {
		name     string
		assigned []int // server of each assignment
		back     time.Duration
		want     int
	}{
		{name: "three dead", assigned: []int{1, 2, 3}, want: 3},
		{name: "slow", assigned: []int{1, 2, 2}, back: 1600 * time.Millisecond, want: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 4, simnet.Config{Delay: 50 * time.Millisecond, Seed: 5})
				g := f.join()
				for range 60 {
					g.play()
				}
				for _, s := range f.servers[:3] {
					f.network.Mute(s.addr.String(), true)
				}
				if c.back > 0 {
					time.AfterFunc(c.back, func() { f.network.Mute(f.servers[1].addr.String(), false) })
				}
				played := func() (at *fleetServer) {
					f.locked(func() {
						if v := f.visits[len(f.visits)-1]; len(v.steps) > 0 {
							at = v.at
						}
					})
					return at
				}
				asked := 0
				for muted := time.Now(); time.Since(muted) < 3*time.Second; g.play() {
					for ; g.silent > asked; asked++ {
						to := c.assigned[min(asked, len(c.assigned)-1)]
						uplinktest.Must(t, g.assign(f.servers[to].addr.String(), f.token(to)))
					}
				}
				if played() != f.servers[c.want] || asked < 2 || asked > len(c.assigned) || len(f.visits) != 2 || len(g.others) != 1 {
					t.Errorf("%d servers assigned, %d visits, %+v", asked, len(f.visits), g.others)
				}
			})
		})
	}
}

// A server falls silent, and the client continues at the one that the backend assigns. That one
// closes: the client reconnects to the first one, without another socket.
func TestAssign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, simnet.Config{Delay: 50 * time.Millisecond, Loss: 0.02, Seed: 6})
		g := f.join()
		play := func(until func() bool) {
			for begun := time.Now(); !until(); g.play() {
				if time.Since(begun) > 20*time.Second {
					t.Fatalf("%d handovers, %+v; %v", len(g.handovers), g.others, f.left)
				}
			}
		}
		visits := func() (n int) {
			f.locked(func() {
				if n = len(f.visits); len(f.visits[n-1].steps) == 0 {
					n--
				}
			})
			return n
		}
		first := f.servers[0].addr.String()
		play(func() bool { return visits() == 1 })
		f.network.Mute(first, true)
		play(func() bool { return g.silent > 0 })
		uplinktest.Must(t, g.assign(f.servers[1].addr.String(), f.token(1)))
		play(func() bool { return visits() == 2 })
		if status, reason := g.outcome(); status != 1 {
			t.Errorf("status %d: %s", status, reason)
		}
		f.network.Mute(first, false)
		_ = f.servers[1].Close()
		again := func() bool { return g.others[len(g.others)-1].kind == eventReconnecting }
		play(again)
		uplinktest.Must(t, g.assign(first, f.token(0)))
		play(func() bool { return visits() == 3 && g.worlds[0].server == 0 })
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.visits[2].at != f.servers[0] || f.player.ClientID() != 7 {
			t.Errorf("%d visits, client %d", len(f.visits), f.player.ClientID())
		}
	})
}
