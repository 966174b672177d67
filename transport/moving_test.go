package transport_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// play sends from both ends at 60 Hz for a while, and returns the number of datagrams that the
// server received.
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

// TestRebinding changes the client's address repeatedly, as a NAT does, on a link with packet loss,
// duplicates and reordering.
func TestRebinding(t *testing.T) {
	for seed := range uint64(10) {
		inWorld(t, bad(seed), func(t *testing.T, w *world) {
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
		inWorld(t, bad(seed), func(t *testing.T, w *world) {
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
