package endpoint_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/transport"
)

// panicking is a handler with the method Panicked.
type panicking struct {
	*recorder
	values []any
}

func (p *panicking) Panicked(c *endpoint.Conn, v any, stack []byte) {
	if !strings.Contains(string(stack), "panics_test.go") {
		p.t.Errorf("the stack is %s", stack)
	}
	p.values = append(p.values, v)
	c.CloseWith(transport.ErrKicked, "a bug")
}

// TestPanic verifies that a panic in a call for a connection ends that connection alone, at either
// end, and that Closed is called.
func TestPanic(t *testing.T) {
	fail := func() { panic("a bug") }
	for name, set := range map[string]func(*recorder){
		"Datagram": func(r *recorder) { r.onDatagram = func(*endpoint.Conn, []byte) { fail() } },
		"Message":  func(r *recorder) { r.onMessage = func(*endpoint.Conn, []byte) { fail() } },
		"Closed":   func(r *recorder) { r.onClosed = func(*endpoint.Conn, error) { fail() } },
	} {
		for _, server := range []bool{false, true} {
			inWorld(t, good, func(t *testing.T, w *world) {
				s := w.serverConn(t)
				other := &recorder{t: t}
				second := dial(t, w.listener.Addr(), w.cfg, other)
				near, far, conn, peer, seen := w.client, w.server, w.conn, s, transport.ErrQuit
				if server {
					near, far, conn, peer, seen = w.server, w.client, s, w.conn, transport.ErrKicked
				}
				set(near)
				if err := errors.Join(peer.Send([]byte("x")), peer.SendReliable([]byte("x"))); err != nil {
					t.Fatal(err)
				}
				if name == "Closed" {
					conn.CloseWith(seen, "")
				}
				e, p := ended(t, near, time.Second), ended(t, far, time.Second)
				if name != "Closed" && !errors.Is(e.err, transport.ErrPanic) || !errors.Is(p.err, seen) {
					t.Errorf("%s, server %v: %v, the peer has %v", name, server, e.err, p.err)
				}
				near.onDatagram, near.onMessage, near.onClosed = nil, nil, nil
				if err := second.SendReliable([]byte("y")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if _, closed, _, messages := w.server.snapshot(); len(messages) == 0 || string(messages[len(messages)-1]) != "y" || second.SendReliable([]byte("z")) != nil {
					t.Errorf("%s, server %v: the other connection ended: %v", name, server, closed)
				}
			})
		}
	}
}

// TestPanicked verifies that the method Panicked learns of a panic, and determines the cause.
func TestPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, good)
		h := &panicking{recorder: &recorder{t: t, onOpened: func(*endpoint.Conn) { panic("a bug") }}}
		l := listen(t, "127.0.0.1:7777", endpoint.Config{Network: network}, h)
		c := &recorder{t: t}
		dial(t, l.Addr(), endpoint.Config{Network: network}, c)
		if e := ended(t, c, time.Second); !errors.Is(e.err, transport.ErrKicked) || len(h.values) != 1 || h.values[0] != "a bug" {
			t.Errorf("ended with %v after the panics %v", e.err, h.values)
		}
	})
}
