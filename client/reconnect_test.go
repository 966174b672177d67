package client_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/transport"
)

// caller calls 60 times a second, and starts its numbers anew when the
// connection was.
type caller struct {
	stream       *client.Stream[uplinktest.Move]
	next         uint64
	reconnecting int
}

func (c *caller) call(t *testing.T, salt uint64, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 60) {
		m := uplinktest.MoveAt(salt, c.next)
		switch err := c.stream.Send(&m); {
		case err == nil:
			c.next++
		case errors.Is(err, client.ErrReconnecting):
			c.next = 0
			c.reconnecting++
		default:
			t.Fatal(err)
		}
	}
}

// TestServerCrash has the server vanish and come back, several times, under a
// client that goes on calling over a bad link.
func TestServerCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.2, 1)
		journal := uplinktest.NewJournal(t, 1)
		srv := serve(t, network, journal)
		conn := uplinktest.Dial(t, network, client.Config{})
		c := caller{stream: uplinktest.Bind(t, conn, "Move")}
		c.call(t, 1, 5*time.Second)
		for restarts := 1; restarts <= 5; restarts++ {
			network.Crash(t, uplinktest.Addr)
			if err := <-srv.Served; err == nil {
				t.Error("Serve gave no error though its socket was gone")
			}
			c.call(t, 1, time.Duration(restarts)*300*ms)
			srv = serve(t, network, journal)
			before := c.reconnecting
			c.call(t, 1, 10*time.Second)
			if c.reconnecting == before || c.next < 300 {
				t.Errorf("restart %d: %d calls while reconnecting, %d since", restarts, c.reconnecting-before, c.next)
			}
			settle(time.Second)
			logs := journal.Logs()
			if len(logs) != restarts+1 {
				t.Fatalf("restart %d: %d players", restarts, len(logs))
			}
			if l := logs[restarts]; l.Frames() < c.next*6/10 || l.Next > c.next || l.Next < c.next-20 || l.Seen()[0] > 20 {
				t.Errorf("restart %d: %d frames from %d to %d, %d were sent", restarts, l.Frames(), l.Seen()[0], l.Next, c.next)
			}
		}
		st := c.stream.Stats()
		if st.Reconnecting != uint64(c.reconnecting) {
			t.Errorf("%d calls counted while reconnecting, want %d", st.Reconnecting, c.reconnecting)
		}
		if f := st.Delivery; f.Delivered < st.Frames()*6/10 || f.Missed == 0 || f.Delivered+f.Missed > st.Frames() || f.Lost < f.Missed {
			t.Errorf("%+v of %d frames over all connections", f, st.Frames())
		}
		if st.Delta < st.Frames()*8/10 {
			t.Errorf("%d of %d frames are deltas", st.Delta, st.Frames())
		}
		if st := conn.Stats(); st.Malformed != 0 || st.Transport.DatagramsSent < 3000 {
			t.Errorf("the connection counts %+v", st)
		}
	})
}

// TestServerUnreachable has the server fall silent without its socket closing: the
// connection times out.
func TestServerUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 2)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		c := caller{stream: uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{Timeout: 3 * time.Second}), "Move")}
		c.call(t, 1, time.Second)
		dead, alive := newLink(1), newLink(0)
		uplinktest.Must(t, network.Set(dead, dead))
		c.call(t, 1, 20*time.Second)
		if c.reconnecting < 16*60 {
			t.Errorf("%d calls while reconnecting", c.reconnecting)
		}
		uplinktest.Must(t, network.Set(alive, alive))
		c.call(t, 1, 5*time.Second)
		settle(time.Second)
		if logs := journal.Logs(); len(logs) != 2 || logs[1].Frames() != c.next || c.next < 120 {
			t.Errorf("%d players, %d frames sent since", len(logs), c.next)
		}
	})
}

// TestServerClose has the server end in good order: it tells its clients, who
// come back when another one is there.
func TestServerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 3)
		var left []error
		journal := uplinktest.NewJournal(t, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		srv, err := ds.Listen(uplinktest.Addr, ds.Config{Network: network, Left: func(_ *ds.Player, err error) { left = append(left, err) }})
		uplinktest.Must(t, err)
		uplinktest.Must(t, ds.Handle(srv, "Move", journal.Handle))
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx) }()
		c := caller{stream: uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")}
		c.call(t, 1, time.Second)
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if len(left) != 1 || left[0] != nil {
			t.Errorf("left: %v", left)
		}
		settle(50 * ms) // the goodbye arrives
		m := uplinktest.MoveAt(1, 0)
		if err := c.stream.Send(&m); !errors.Is(err, client.ErrReconnecting) {
			t.Errorf("got %v, want ErrReconnecting", err)
		}
		uplinktest.Must(t, srv.Close())
		uplinktest.Must(t, srv.Close())
		serve(t, network, journal)
		c.next = 0
		c.call(t, 1, 3*time.Second)
		settle(time.Second)
		if logs := journal.Logs(); len(logs) != 2 || logs[1].Frames() != c.next || c.next < 120 {
			t.Errorf("%d players, %d frames sent since", len(logs), c.next)
		}
	})
}

// TestClientRestart has a client come back from the same address, with and
// without a goodbye.
func TestClientRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.1, 4)
		journal := uplinktest.NewJournal(t, 1)
		var joined, left atomic.Int64
		uplinktest.Serve(t, network, ds.Config{
			Joined: func(*ds.Player) { joined.Add(1) },
			Left:   func(*ds.Player, error) { left.Add(1) },
		}, func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
		const rounds = 4
		for round := range rounds {
			conn := uplinktest.Dial(t, fixedPort{network}, client.Config{})
			c := caller{stream: uplinktest.Bind(t, conn, "Move")}
			c.call(t, 1, 3*time.Second)
			if round%2 == 0 {
				network.Crash(t, clientAddr)
			}
			uplinktest.Must(t, conn.Close())
		}
		settle(15 * time.Second)
		logs := journal.Logs()
		if len(logs) != rounds || joined.Load() != rounds || left.Load() != rounds {
			t.Fatalf("%d players, %d joined, %d left, want %d each", len(logs), joined.Load(), left.Load(), rounds)
		}
		for i := range logs {
			if l := &logs[i]; l.Frames() < 140 || l.Next < 170 {
				t.Errorf("player %d: %d frames up to %d", i, l.Frames(), l.Next)
			}
		}
	})
}

const clientAddr = "127.0.0.1:50000"

// fixedPort gives clients always the same address.
type fixedPort struct{ *uplinktest.Network }

func (n fixedPort) ListenPacket(addr string) (transport.PacketConn, error) {
	if addr == "127.0.0.1:0" {
		addr = clientAddr
	}
	return n.Network.ListenPacket(addr)
}

// TestSilentClient is silent for a minute, and goes on with deltas.
func TestSilentClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.2, 5)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		c := caller{stream: uplinktest.Bind(t, uplinktest.Dial(t, network, client.Config{}), "Move")}
		c.call(t, 1, 2*time.Second)
		for range 3 {
			before := c.stream.Stats()
			settle(time.Minute)
			c.call(t, 1, 2*time.Second)
			if now := c.stream.Stats(); now.Delta-before.Delta < 110 || now.Reset != before.Reset {
				t.Errorf("after the silence %+v, before it %+v", now.Stats, before.Stats)
			}
		}
		settle(time.Second)
		if l := journal.Only(); c.reconnecting != 0 || l.Frames() < c.next*7/10 {
			t.Errorf("%d of %d frames delivered, %d calls while reconnecting", l.Frames(), c.next, c.reconnecting)
		}
	})
}

// TestKick has a handler throw the player out, who does not come back.
func TestKick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 6)
		var left []error
		uplinktest.Serve(t, network, ds.Config{Left: func(_ *ds.Player, err error) { left = append(left, err) }}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(p *ds.Player, f ds.Frame[uplinktest.Move]) {
				if f.Seq >= 30 {
					p.Kick("enough")
					p.Kick("more than enough")
				}
			})
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		stream := uplinktest.Bind(t, conn, "Move")
		var err error
		for n := uint64(0); err == nil && n < 600; n++ {
			m := uplinktest.MoveAt(1, n)
			err = stream.Send(&m)
			settle(time.Second / 60)
		}
		if !errors.Is(err, client.ErrKicked) || !strings.Contains(err.Error(), `"enough"`) {
			t.Errorf("Send: %v", err)
		}
		settle(time.Minute)
		if _, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{}); !errors.Is(err, client.ErrKicked) {
			t.Errorf("Bind: %v", err)
		}
		if len(left) != 1 || left[0] != nil {
			t.Errorf("left %v", left)
		}
	})
}

// TestThrownOutAtOnce has a server throw players out as they come.
func TestThrownOutAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 7)
		var joined atomic.Int64
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			joined.Add(1)
			p.Kick("banned")
		}}, func(*ds.Server) error { return nil })
		conn, err := client.Dial(t.Context(), uplinktest.Addr, client.Config{Network: network})
		uplinktest.Must(t, err)
		settle(time.Minute)
		if n := joined.Load(); n != 1 {
			t.Errorf("%d attempts in a minute", n)
		}
		uplinktest.Must(t, conn.Close())
	})
}

// TestCloseWhileReconnecting ends what reconnects.
func TestCloseWhileReconnecting(t *testing.T) {
	for _, wait := range []time.Duration{0, 500 * ms, 1200 * ms, 3 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork(t, 0, 8)
			srv := serve(t, network, uplinktest.NewJournal(t, 1))
			conn := uplinktest.Dial(t, network, client.Config{})
			c := caller{stream: uplinktest.Bind(t, conn, "Move")}
			c.call(t, 1, time.Second)
			network.Crash(t, uplinktest.Addr)
			<-srv.Served
			c.call(t, 1, wait)
			start := time.Now()
			done := make(chan error)
			for range 3 {
				go func() { done <- conn.Close() }()
			}
			for range 3 {
				uplinktest.Must(t, <-done)
			}
			if took := time.Since(start); took > 100*ms {
				t.Errorf("Close took %v", took)
			}
			m := uplinktest.MoveAt(1, 0)
			if err := c.stream.Send(&m); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Send after Close: %v", err)
			}
			if _, err := client.Bind[uplinktest.Move](t.Context(), conn, "Move", client.BindConfig{}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Bind after Close: %v", err)
			}
			if conn.RTT() != 0 {
				t.Errorf("a round trip of %v after Close", conn.RTT())
			}
		})
	}
}

// TestClose tells the server, at once, and works twice.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 9)
		var left []error
		journal := uplinktest.NewJournal(t, 1)
		uplinktest.Serve(t, network, ds.Config{Left: func(_ *ds.Player, err error) { left = append(left, err) }},
			func(s *ds.Server) error { return ds.Handle(s, "Move", journal.Handle) })
		conn := uplinktest.Dial(t, network, client.Config{})
		c := caller{stream: uplinktest.Bind(t, conn, "Move")}
		c.call(t, 1, time.Second)
		if rtt := conn.RTT(); rtt < 50*ms || rtt > 70*ms {
			t.Errorf("a round trip of %v, want 50 ms and a tick", rtt)
		}
		uplinktest.Must(t, conn.Close())
		uplinktest.Must(t, conn.Close())
		settle(100 * ms)
		if len(left) != 1 || !errors.Is(left[0], transport.ErrClosedByPeer) {
			t.Errorf("left: %v", left)
		}
		before := c.stream.Stats()
		m := uplinktest.MoveAt(1, 0)
		if err := c.stream.Send(&m); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send after Close: %v", err)
		}
		if after := c.stream.Stats(); after != before || before.Frames() != c.next {
			t.Errorf("a call after Close was counted: %+v", after)
		}
		if st := conn.Stats(); st.Transport.DatagramsSent < 60 || len(st.RPCs) != 1 {
			t.Errorf("after Close %+v", st)
		}
	})
}

// TestPlayerAfterLeft uses a player who is gone.
func TestPlayerAfterLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 10)
		var player *ds.Player
		uplinktest.Serve(t, network, ds.Config{Joined: func(p *ds.Player) { player = p }}, func(s *ds.Server) error {
			return ds.Handle(s, "Move", func(*ds.Player, ds.Frame[uplinktest.Move]) {})
		})
		conn := uplinktest.Dial(t, network, client.Config{})
		c := caller{stream: uplinktest.Bind(t, conn, "Move")}
		c.call(t, 1, time.Second)
		uplinktest.Must(t, conn.Close())
		settle(time.Second)
		if player.ID() == 0 || player.RTT() == 0 || player.Addr() == (netip.AddrPort{}) {
			t.Error("a player who left forgot who it is")
		}
		player.Kick("gone")
	})
}
