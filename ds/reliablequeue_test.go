package ds_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type nameTag struct {
	ID   uint16
	Name string `uplink:"max=24"`
}

// TestReliableQueue makes 3,000 small reliable calls in Joined, which are less than 256 KiB: all
// arrive. Then messages fill the queue, whose error names the limit, and a goroutine waits for room
// again and again: all of its messages arrive too.
func TestReliableQueue(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const calls, messages = 3000, 200
		network := linkedBy(t, 120*ms, simnet.Config{})
		joined := make(chan *ds.Player, 1)
		serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			s, err := ds.Bind[nameTag](p, "Label", ds.BindConfig{Reliable: true})
			uplinktest.Must(t, err)
			for i := range uint16(calls) {
				uplinktest.Must(t, uplinktest.Sent(s.Send(&nameTag{i, "player"})))
			}
			joined <- p
		}})
		var handlers client.Handlers
		var called, received atomic.Int64
		uplinktest.Must(t, client.Handle(&handlers, "Label", func(c client.Call[nameTag]) {
			if int64(c.Value.ID) != called.Add(1)-1 {
				t.Errorf("call %d arrived as number %d", c.Value.ID, called.Load())
			}
		}))
		uplinktest.Dial(t, network, client.Config{Handlers: &handlers, OnMessage: func([]byte) { received.Add(1) }})
		p := <-joined
		settle(30 * time.Second)
		if n := called.Load(); n != calls {
			t.Fatalf("%d of %d calls arrived", n, calls)
		}

		sent := int64(0)
		var err error
		for err == nil {
			if err = p.SendReliable(make([]byte, 8000)); err == nil {
				sent++
			}
		}
		if sent != 256<<10/8003 || !errors.Is(err, session.ErrBacklog) || !strings.Contains(err.Error(), "262144") {
			t.Errorf("%d messages of 8,000 bytes, then %v", sent, err)
		}
		if n := p.ReliableRoom(); n >= 8000 {
			t.Errorf("room for %d bytes", n)
		}
		for range messages {
			uplinktest.Must(t, p.WaitReliable(t.Context(), 8000))
			uplinktest.Must(t, p.SendReliable(make([]byte, 8000)))
			sent++
		}
		settle(10 * time.Second)
		if n := received.Load(); n != sent {
			t.Errorf("%d of %d messages arrived", n, sent)
		}
		if n := p.ReliableRoom(); n != ds.MaxMessage {
			t.Errorf("room for %d bytes at last", n)
		}
	})
}

// TestReliableQueueOfServer: players share a limit. A context ends the wait for room.
func TestReliableQueueOfServer(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		network := linkedBy(t, 120*ms, simnet.Config{})
		joined := make(chan *ds.Player, 2)
		serve(t, network, ds.Config{Limits: ds.Limits{ReliableQueue: 64 << 10, TotalReliableQueue: 100_000}, Joined: func(p *ds.Player) { joined <- p }})
		var players []*ds.Player
		for range 2 {
			uplinktest.Dial(t, network, client.Config{})
			players = append(players, <-joined)
		}
		var errs []error
		for _, p := range players {
			var err error
			for err == nil {
				err = p.SendReliable(make([]byte, 8000))
			}
			errs = append(errs, err)
		}
		if !strings.Contains(errs[0].Error(), "65536") || !strings.Contains(errs[1].Error(), "100000") {
			t.Errorf("the limits are not named: %v", errs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		defer cancel()
		if err := players[1].WaitReliable(ctx, 8000); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, session.ErrBacklog) {
			t.Errorf("got %v", err)
		}
		uplinktest.Must(t, players[1].WaitReliable(t.Context(), 8000))
		players[0].Kick("")
		settle(time.Second)
		if err := players[0].WaitReliable(t.Context(), 8000); err == nil {
			t.Error("no error after the end of the session")
		}
	})
}

// TestReliableQueueOfClient: a client waits for room, which the rate limit of its messages leaves.
func TestReliableQueueOfClient(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const messages = 60
		network := linkedBy(t, 120*ms, simnet.Config{})
		var received atomic.Int64
		serve(t, network, ds.Config{OnMessage: func(*ds.Player, []byte) { received.Add(1) }})
		conn := uplinktest.Dial(t, network, client.Config{})
		for range messages {
			uplinktest.Must(t, conn.WaitReliable(t.Context(), 8000))
			uplinktest.Must(t, conn.SendReliable(make([]byte, 8000)))
		}
		if n := conn.ReliableRoom(); n >= 8000 {
			t.Errorf("room for %d bytes", n)
		}
		settle(5 * time.Second)
		if n := received.Load(); n != messages {
			t.Errorf("%d of %d messages arrived", n, messages)
		}
	})
}
