package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// play has both ends send at 60 Hz for a while, and returns what came to the server.
func (w *world) play(t *testing.T, s *transport.Conn, d time.Duration) int {
	t.Helper()
	_, _, before, _ := w.server.snapshot()
	for i := range int(d / (time.Second / 60)) {
		if err := errors.Join(w.conn.Send(fmt.Appendf(nil, "%d", i)), s.Send([]byte("ack"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second / 60)
	}
	_, _, after, _ := w.server.snapshot()
	return len(after) - len(before)
}

// TestRebinding has a router between change the client's address again and again, on a link that loses,
// duplicates and reorders.
func TestRebinding(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, bad(seed))
			s := w.serverConn(t)
			inside := w.conn.LocalAddr()
			for range 5 {
				w.play(t, s, time.Second)
				outside, err := w.network.Rebind(inside)
				if err != nil {
					t.Fatal(err)
				}
				w.play(t, s, 2*time.Second)
				if got := s.RemoteAddr(); got != outside {
					t.Errorf("the server sends to %v, want %v", got, outside)
				}
			}
			if moves := s.Stats().PathMigrations; moves != 5 {
				t.Errorf("%d moves, want 5", moves)
			}
			if n := w.play(t, s, time.Second); n < 20 {
				t.Errorf("%d of 60 datagrams came in the end", n)
			}
			if l := w.listener.Stats(); l.Open != 1 || l.Conns != 1 || l.PathMigrations != 5 {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestRebind changes the client's own socket.
func TestRebind(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, bad(seed))
			s := w.serverConn(t)
			w.play(t, s, time.Second)
			before := w.conn.LocalAddr()
			if err := w.conn.Rebind(); err != nil {
				t.Fatal(err)
			}
			if err := w.conn.SendReliable([]byte("still here")); err != nil {
				t.Fatal(err)
			}
			w.play(t, s, 3*time.Second)
			if got, want := s.RemoteAddr(), w.conn.LocalAddr(); got != want || got == before {
				t.Errorf("the server sends to %v, want %v", got, want)
			}
			_, _, _, messages := w.server.snapshot()
			if len(messages) != 1 || string(messages[0]) != "still here" {
				t.Errorf("messages %q", messages)
			}
			if err := s.Rebind(); err == nil {
				t.Errorf("the server's end: %v", err)
			}
			_ = w.conn.Close()
			if err := w.conn.Rebind(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// TestIdleRebinding: heartbeats are enough.
func TestIdleRebinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, good)
		s := w.serverConn(t)
		outside, err := w.network.Rebind(w.conn.LocalAddr())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if got := s.RemoteAddr(); got != outside {
			t.Errorf("the server sends to %v, want %v", got, outside)
		}
	})
}

// robbed is a network on which somebody sends on, from an address of its own, whatever it sees a client send:
// every second datagram at once, ahead of the original, and old ones again and again.
type robbed struct {
	*simnet.Network
	t       *testing.T
	thief   transport.PacketConn
	outside netip.AddrPort // of the client
}

func (n *robbed) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.Network.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	n.outside = pc.LocalAddr()
	if n.thief, err = n.Network.ListenPacket(addr); err != nil {
		return nil, err
	}
	n.t.Cleanup(func() { _ = n.thief.Close() })
	return &victim{PacketConn: pc, thief: n.thief}, nil
}

// victim is the client's packet connection.
type victim struct {
	transport.PacketConn
	thief transport.PacketConn

	mu   sync.Mutex
	seen [][]byte
}

func (v *victim) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, bytes.Clone(b))
	count := len(v.seen)
	if count%2 == 0 {
		_, _ = v.thief.WriteTo(b, to)
	}
	_, _ = v.thief.WriteTo(v.seen[count/2], to)
	return v.PacketConn.WriteTo(b, to)
}

// TestRacedCopies: copies move no session, and keep no client from moving.
func TestRacedCopies(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Config{Delay: 20 * time.Millisecond, Loss: 0.1, Seed: seed}
			n := newNetwork(t, link)
			w := &world{network: n, server: &recorder{t: t}, client: &recorder{t: t}}
			w.listener = listen(t, serverAddr, transport.Config{Network: n}, w.server)
			robbed := &robbed{Network: n, t: t}
			w.conn = dial(t, w.listener.Addr(), transport.Config{Network: robbed}, w.client)
			s := w.serverConn(t)
			for range 4 {
				w.play(t, s, time.Second)
				if got := s.RemoteAddr(); got != robbed.outside {
					t.Errorf("the server sends to %v, want %v; the thief is at %v", got, robbed.outside, robbed.thief.LocalAddr())
				}
				var err error
				if robbed.outside, err = n.Rebind(w.conn.LocalAddr()); err != nil {
					t.Fatal(err)
				}
				w.play(t, s, 3*time.Second)
			}
			if got := s.RemoteAddr(); got != robbed.outside {
				t.Errorf("the server sends to %v in the end, want %v", got, robbed.outside)
			}
			if moves := s.Stats().PathMigrations; moves != 4 {
				t.Errorf("%d moves, want 4", moves)
			}
		})
	}
}
