package ds_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestDeadServer mutes the server of a client that plays. If that is for good, the client plays at
// another server within 3 s. If the server answers again before that, the client stays, and every
// call arrives there.
func TestDeadServer(t *testing.T) {
	const id = 7
	for name, silence := range map[string]time.Duration{"for good": 0, "for 1.35 s": 1350 * ms} {
		bubble(t, name, func(t *testing.T) {
			f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{}), 2)
			asked := 0
			g := f.join(t, client.Config{Token: f.token(id), Assign: func(context.Context) (string, token.Token, error) {
				asked++
				return f.members[1].addr, f.token(id), nil
			}})
			end := polling(t, time.Second/60, g.play)
			settle(time.Second)
			first := f.player(id)
			f.network.Mute(f.members[0].addr, true)
			if silence != 0 {
				time.AfterFunc(silence, func() { f.network.Mute(f.members[0].addr, false) })
			}
			settle(3 * time.Second)
			if g.State() != client.Connected || asked != 1 {
				t.Errorf("%v, %d servers were asked for", g.State(), asked)
			}
			moved := g.ID() != first.ID()
			if moved != (silence == 0) {
				t.Errorf("at another server: %v", moved)
			}
			if moved {
				f.mu.Lock()
				v := f.visits[id][len(f.visits[id])-1]
				if v.at != f.members[1] || len(v.steps) == 0 {
					t.Errorf("%d calls arrived at the other server", len(v.steps))
				}
				f.mu.Unlock()
			}
			settle(3 * time.Second)
			end()
			settle(time.Second)
			f.mu.Lock()
			defer f.mu.Unlock()
			if g.unsent > 0 || asked != 1 {
				t.Errorf("%d calls were not sent, %d servers were asked for", g.unsent, asked)
			}
			if v := f.visits[id][0]; !moved {
				once(t, "calls", v.steps, g.next)
				once(t, "reliable calls", v.reliable, g.bought)
				once(t, "messages", v.messages, g.sent)
			}
		})
	}
}

// TestStoppedClient stops a client that plays, as if its process did not run, and mutes its server
// meanwhile. The client does not ask for another one when it runs again.
func TestStoppedClient(t *testing.T) {
	const id = 7
	bubble(t, "", func(t *testing.T) {
		f, g, asked := playing(t, id)
		g.pause.Store(int64(2 * time.Second))
		f.network.Mute(f.members[0].addr, true)
		settle(2 * time.Second)
		f.network.Mute(f.members[0].addr, false)
		settle(3 * time.Second)
		if g.State() != client.Connected || g.Server() != f.members[0].addr || *asked > 0 {
			t.Errorf("%v on %s, %d servers were asked for", g.State(), g.Server(), *asked)
		}
	})
}

// TestDeadServers mutes three of four servers for good, of which a client plays on one and gets the
// others first: it plays on the fourth within 3 s, and asked for each once.
func TestDeadServers(t *testing.T) {
	const id = 7
	bubble(t, "", func(t *testing.T) {
		f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{}), 4)
		var asked []string
		g := f.join(t, client.Config{Token: f.token(id), Assign: func(context.Context) (string, token.Token, error) {
			asked = append(asked, f.members[len(asked)+1].addr)
			return asked[len(asked)-1], f.token(id), nil
		}})
		polling(t, time.Second/60, g.play)
		settle(time.Second)
		for _, m := range f.members[:3] {
			f.network.Mute(m.addr, true)
		}
		if at := g.Server(); at != f.members[0].addr {
			t.Errorf("it says that it plays on %s", at)
		}
		settle(3 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if v := f.visits[id][len(f.visits[id])-1]; v.at != f.members[3] || len(v.steps) == 0 || len(asked) != 3 || len(f.visits[id]) != 2 {
			t.Errorf("%v on %s, %d calls, %d servers joined, after %v", g.State(), g.Server(), len(v.steps), len(f.visits[id]), asked)
		}
	})
}

// TestManyOrphans mutes two of four servers for good, over a link that loses 5 % of the datagrams.
// All players of these play at one of the others within 3 s, though each may get the other dead
// server first.
func TestManyOrphans(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.05, Seed: 11}), 4)
		var moved []*handoverClient
		for id := range uint64(60 / thin(4)) {
			at, dead := int(id%2), int(1-id%2)
			order := []int{dead, 2, 3}[id/2%2:] // by turns
			g := f.join(t, client.Config{Token: f.token(id), Assign: func(context.Context) (string, token.Token, error) {
				next := order[0]
				if len(order) > 1 {
					order = order[1:]
				}
				return f.members[next].addr, f.token(id), nil
			}}, f.members[at].addr)
			moved = append(moved, g)
			polling(t, 100*ms, g.play)
		}
		settle(time.Second)
		f.network.Mute(f.members[0].addr, true)
		f.network.Mute(f.members[1].addr, true)
		settle(3 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		for id, g := range moved {
			back := slices.ContainsFunc(f.visits[uint64(id)][1:], func(v *visit) bool { return v.at.addr == g.Server() && len(v.steps) > 0 })
			if !back || g.State() != client.Connected {
				t.Errorf("client %d is %v on %s", id, g.State(), g.Server())
			}
		}
	})
}

// playing returns two servers, a client that plays on the first and is assigned the second, and how
// often it asked for a server.
func playing(t *testing.T, id uint64) (f *serverGroup, g *handoverClient, asked *int) {
	t.Helper()
	f, asked = newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{}), 2), new(int)
	g = f.join(t, client.Config{Token: f.token(id), Assign: func(context.Context) (string, token.Token, error) {
		*asked++
		return f.members[1].addr, f.token(id), nil
	}})
	polling(t, time.Second/60, g.play)
	settle(time.Second)
	return f, g, asked
}

// TestDeadServerAgain mutes the server of a client for so long that it looks for another one, which
// is dead, and later for good. The client finds another one then.
func TestDeadServerAgain(t *testing.T) {
	const id = 7
	bubble(t, "", func(t *testing.T) {
		f, g, _ := playing(t, id)
		mute := func(server int, mute bool) { f.network.Mute(f.members[server].addr, mute) }
		mute(0, true)
		mute(1, true)
		settle(1700 * ms)
		mute(0, false)
		settle(5 * time.Second)
		if g.State() != client.Connected || g.Server() != f.members[0].addr {
			t.Errorf("%v on %s", g.State(), g.Server())
		}
		mute(1, false)
		mute(0, true)
		settle(3 * time.Second)
		if g.State() != client.Connected || g.Server() != f.members[1].addr {
			t.Errorf("%v on %s after the end of the first", g.State(), g.Server())
		}
	})
}

// TestSlowServer mutes the server of a client, and another one that it gets first for so long that
// it asks for a third, which is dead too. The client plays on the second within 3 s.
func TestSlowServer(t *testing.T) {
	const id = 7
	bubble(t, "", func(t *testing.T) {
		f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{}), 3)
		asked := 0
		g := f.join(t, client.Config{Token: f.token(id), Assign: func(context.Context) (string, token.Token, error) {
			asked++
			return f.members[min(asked, 2)].addr, f.token(id), nil
		}})
		polling(t, time.Second/60, g.play)
		settle(time.Second)
		for _, m := range f.members {
			f.network.Mute(m.addr, true)
		}
		time.AfterFunc(1600*ms, func() { f.network.Mute(f.members[1].addr, false) })
		settle(3 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if v := f.visits[id][len(f.visits[id])-1]; v.at != f.members[1] || len(v.steps) == 0 || asked < 2 || len(f.visits[id]) != 2 {
			t.Errorf("%v on %s, %d calls, %d servers joined, %d asked for", g.State(), g.Server(), len(v.steps), len(f.visits[id]), asked)
		}
	})
}

// TestDeadServerBacklog mutes the server of a client whose reliable calls it has not acknowledged,
// of which one waits for room: they are lost, and the client plays at another server within 3 s.
func TestDeadServerBacklog(t *testing.T) {
	const id = 7
	bubble(t, "", func(t *testing.T) {
		f, g, _ := playing(t, id)
		f.network.Mute(f.members[0].addr, true)
		var err error
		for n := int32(0); err == nil && n < 1000; n++ {
			b := numberedAt(n)
			_, err = g.buys.Send(&b)
		}
		if !errors.Is(err, transport.ErrBacklog) {
			t.Fatalf("the backlog is not full: %v", err)
		}
		settle(3 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if v := f.visits[id][len(f.visits[id])-1]; v.at != f.members[1] || len(v.steps) == 0 || len(v.reliable) == 0 {
			t.Errorf("it plays at %s, %d calls, %d reliable ones", v.at.addr, len(v.steps), len(v.reliable))
		}
	})
}

// TestSilentServer mutes the only server of clients that play, for various times: a client gets
// another token for the same server, where its newer session replaces the older one. Everybody
// plays on, also those who chose to stay.
func TestSilentServer(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const rounds = 8
		clients := 12 / thin(3)
		f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.2, Seed: 9}), 1)
		var moved []*handoverClient
		for id := range uint64(clients) {
			g := f.join(t, client.Config{Token: f.token(id), Renew: func(context.Context) (token.Token, error) { return f.token(id), nil }})
			moved = append(moved, g)
			polling(t, time.Second/60, g.play)
		}
		for i := 0; i < rounds; i += thin(3) {
			settle(3 * time.Second)
			f.network.Mute(f.members[0].addr, true)
			settle(1350*ms + time.Duration(i)*700*ms)
			f.network.Mute(f.members[0].addr, false)
		}
		settle(3 * time.Second)
		f.network.Mute(f.members[0].addr, true) // until it has ended all sessions
		settle(30 * time.Second)
		f.network.Mute(f.members[0].addr, false)
		settle(20 * time.Second)
		for id, g := range moved {
			if g.State() != client.Connected {
				t.Errorf("client %d is %v: %v", id, g.State(), g.Err())
			}
		}
	})
}

// TestTextsOfDeadServer crashes the only server of a client that plays. Each event, and each record
// of the client's log, is one line that names every cause once, and the client plays on when
// another process is at the server's address.
func TestTextsOfDeadServer(t *testing.T) {
	const id = 7
	bubble(t, "", func(t *testing.T) {
		f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{}), 1)
		addr := f.members[0].addr
		var log uplinktest.Record
		g := f.join(t, client.Config{
			Token: f.token(id), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Renew: func(context.Context) (token.Token, error) { return f.token(id), nil },
		})
		polling(t, time.Second/60, g.play)
		settle(time.Second)
		f.network.Crash(t, addr)
		settle(20 * time.Second)
		f.add(addr)
		settle(10 * time.Second)
		if g.State() != client.Connected {
			t.Errorf("%v after the restart", g.State())
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		var texts []string
		for _, e := range g.events {
			if e.Err != nil {
				texts = append(texts, e.Err.Error())
			}
		}
		if !strings.Contains(strings.Join(texts, "\n"), "no answer within 5s; check") {
			t.Errorf("the causes of the events are %q", texts)
		}
		for _, text := range append(texts, strings.Split(strings.TrimSpace(log.String()), "\n")...) {
			t.Log(text)
			parts := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' })
			slices.Sort(parts)
			if len(slices.Compact(slices.Clone(parts))) != len(parts) || strings.Contains(text, "\n") || strings.Contains(text, `\n`) {
				t.Errorf("%q", text)
			}
		}
	})
}
