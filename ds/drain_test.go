package ds_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestDrain drains one of three servers while everybody plays. Everybody is handed over, nobody can
// join any more, and no reliable call is lost.
func TestDrain(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const clients = 12
		f := newServerGroup(t, linkedBy(t, 100*ms, simnet.Config{Loss: 0.05, Seed: 7}), 3)
		var moved []*handoverClient
		for range clients {
			g := f.join(t, client.Config{})
			moved = append(moved, g)
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
		if err := <-refused; !errors.Is(err, transport.ErrDraining) {
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
		for _, g := range moved {
			if g.unsent > 0 {
				t.Errorf("%d calls were not sent", g.unsent)
			}
		}
	})
}

// TestFleetDrain drains a server of a fleet with 250 players without a function that chooses.
// Within 30 s everybody plays at the other servers with the same labels, which share them. The
// directory and new clients learn of it at once; the token of such a client is not used up.
func TestFleetDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 250
		f := newFleetOver(t, 4, 0, simnet.Config{Delay: 50 * ms, Loss: 0.05, Seed: 8})
		for _, srv := range f.servers {
			uplinktest.Must(t, ds.Handle(srv, "Step", func(*ds.Player, ds.Frame[numbered]) {}))
		}
		other, err := ds.Listen("127.0.0.1:7999", ds.Config{Network: f.network, Key: f.key, Fleet: &fleet.Config{Store: f.store, Name: "ice", Labels: map[string]string{"map": "ice"}}})
		uplinktest.Must(t, err)
		go func() { _ = other.Serve(context.Background()) }()
		defer other.Close()
		var events atomic.Int64
		var dialing sync.WaitGroup
		for i := range clients {
			dialing.Go(func() {
				c, err := client.Dial(t.Context(), f.addrs[0].String(), client.Config{Network: f.network, Token: f.issue(uint64(1 + i)), NoReconnect: true, OnEvent: func(e client.Event) {
					if e.Handover == client.HandoverCompleted {
						events.Add(1)
					}
				}})
				uplinktest.Must(t, err)
				t.Cleanup(func() { uplinktest.Must(t, c.Close()) })
				_, err = client.Bind[numbered](t.Context(), c, "Step", client.BindConfig{RateHz: 60})
				uplinktest.Must(t, err)
			})
		}
		dialing.Wait()
		settle(3 * time.Second)
		late := f.issue(1000)
		time.AfterFunc(200*ms, func() {
			all, err := f.store.Servers(t.Context())
			if draining := slices.IndexFunc(all, func(s fleet.Server) bool { return s.Draining }); err != nil || draining < 0 || all[draining].Name != "s0" {
				t.Errorf("the directory: %+v, %v", all, err)
			}
			if _, err := f.dial(0, late); !errors.Is(err, transport.ErrDraining) {
				t.Errorf("a client during the drain: %v", err)
			}
			c, err := f.dial(1, late)
			uplinktest.Must(t, err)
			uplinktest.Must(t, c.Close())
		})
		start := time.Now()
		uplinktest.Must(t, f.servers[0].Drain(t.Context(), nil))
		took := time.Since(start)
		t.Logf("%d players in %v", clients, took)
		if took > 30*time.Second || events.Load() != clients {
			t.Errorf("%d of %d players were handed over in %v", events.Load(), clients, took)
		}
		settle(3 * time.Second)
		for i, srv := range f.servers[1:] {
			if n := srv.Stats().Transport.Open; n < clients/5 || n > clients/2 {
				t.Errorf("server %d has %d players", i+1, n)
			}
		}
		if n := other.Stats().Transport.Open; n != 0 {
			t.Errorf("%d players at a server with other labels", n)
		}
	})
}

// held is a store whose calls of Use wait.
type held struct {
	fleet.Store
	wait time.Duration
}

func (h *held) Use(ctx context.Context, u fleet.Use) error {
	time.Sleep(h.wait)
	return h.Store.Use(ctx, u)
}

// TestDrainHandshake begins to drain an empty server at each step of a client's handshake. Every
// client plays at the other server afterwards: it was handed over, or its token was not used.
func TestDrainHandshake(t *testing.T) {
	results := map[bool]int{} // by handover
	for after := 0 * ms; after <= 400*ms; after += 25 * ms {
		bubble(t, after.String(), func(t *testing.T) {
			f := newFleetOver(t, 2, 0, simnet.Config{Delay: 50 * ms})
			f.store.Store = &held{f.store.Store, 100 * ms}
			drained := make(chan error, 1)
			time.AfterFunc(after, func() { drained <- f.servers[0].Drain(t.Context(), nil) })
			tok, events := f.issue(1), 0
			c, err := client.Dial(t.Context(), f.addrs[0].String(), client.Config{Network: f.network, Token: tok, OnEvent: func(e client.Event) {
				if e.Handover == client.HandoverCompleted {
					events++
				}
			}})
			refused := errors.Is(err, transport.ErrDraining) || errors.Is(err, transport.ErrTimeout) // it had closed
			if refused {
				c, err = f.dial(1, tok)
			}
			uplinktest.Must(t, err)
			defer c.Close()
			settle(3 * time.Second)
			uplinktest.Must(t, <-drained)
			if n := f.servers[1].Stats().Transport.Open; n != 1 || events == 1 == refused || c.Err() != nil {
				t.Errorf("%d players at the other server, %d handovers, refused: %v, %v", n, events, refused, c.Err())
			}
			results[refused]++
		})
	}
	if results[true] == 0 || results[false] < 8 {
		t.Errorf("refused or not: %v", results)
	}
}

// TestFleetDrainOutage drains a server of a fleet whose directory cannot be read for a while: the
// players stay until it can. Without another server they are told to leave.
func TestFleetDrainOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, time.Minute)
		c, err := f.dial(0, f.issue(1))
		uplinktest.Must(t, err)
		defer c.Close()
		settle(time.Second)
		f.store.down.Store(true)
		drained := make(chan error, 1)
		go func() { drained <- f.servers[0].Drain(t.Context(), nil) }()
		settle(10 * time.Second)
		if f.servers[0].Stats().Transport.Open != 1 || c.Err() != nil {
			t.Errorf("during the outage: %v", c.Err())
		}
		f.store.down.Store(false)
		settle(5 * time.Second)
		uplinktest.Must(t, <-drained)
		if f.servers[1].Stats().Transport.Open != 1 || c.Err() != nil {
			t.Errorf("after the outage: %v", c.Err())
		}
		start := time.Now()
		uplinktest.Must(t, f.servers[1].Drain(t.Context(), nil))
		if d := time.Since(start); d > time.Second {
			t.Errorf("without another server: drained in %v", d)
		}
	})
}

// TestShutdownKeepsTokens dials a server that shuts down: it refuses before the token is used up.
func TestShutdownKeepsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 0)
		stays, err := f.dial(0, f.issue(1))
		uplinktest.Must(t, err)
		defer stays.Close()
		r := dialRawAt(t, f.addrs[0].String(), endpoint.Config{Network: f.network, Token: f.issue(2)}, 30*ms) // it does not leave
		settle(time.Second)
		end, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- f.servers[0].Shutdown(end) }()
		settle(time.Second)
		tok := f.issue(3)
		if _, err := f.dial(0, tok); !errors.Is(err, transport.ErrDraining) {
			t.Errorf("during the shutdown: %v", err)
		}
		c, err := f.dial(1, tok)
		if err != nil {
			t.Fatalf("the same token at another server: %v", err)
		}
		uplinktest.Must(t, c.Close())
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || r.leaves == 0 {
			t.Errorf("shutdown: %v, %d times told to leave", err, r.leaves)
		}
	})
}

func mustKey(t testing.TB) token.Key {
	t.Helper()
	k, err := token.NewKey()
	uplinktest.Must(t, err)
	return k
}
