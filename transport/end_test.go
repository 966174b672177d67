package transport_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// ended waits for virtual time d and returns the one connection's end that r noted, or fails.
func ended(t *testing.T, r *recorder, d time.Duration) ending {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	_, closed, _, _ := r.snapshot()
	if len(closed) != 1 {
		t.Fatalf("%d connections ended within %v, want 1", len(closed), d)
	}
	return closed[0]
}

// TestConnCloses closes one end. Its own Closed has no error; that of the peer wraps the reason.
func TestConnCloses(t *testing.T) {
	const reason = "kicked"
	for name, c := range map[string]struct {
		server bool // closes
		close  func(*transport.Conn)
		want   error
	}{
		"client":          {false, func(c *transport.Conn) { c.CloseWith(reason) }, transport.ErrClosedByPeer},
		"server":          {true, func(c *transport.Conn) { c.CloseWith(reason) }, transport.ErrClosedByPeer},
		"client shutdown": {false, func(c *transport.Conn) { c.Shutdown(reason) }, transport.ErrPeerShutdown},
		"server shutdown": {true, func(c *transport.Conn) { c.Shutdown(reason) }, transport.ErrPeerShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, good, func(t *testing.T, w *world) {
				conn, peer, near, far := w.conn, w.serverConn(t), w.client, w.server
				if c.server {
					conn, peer, near, far = peer, conn, far, near
				}
				c.close(conn)
				if err := conn.Send(nil); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Send after Close: %v", err)
				}
				if e := ended(t, near, time.Second); e.conn != conn || e.err != nil {
					t.Errorf("closing end: %+v", e)
				}
				e := ended(t, far, time.Second)
				if e.conn != peer || !errors.Is(e.err, c.want) || !strings.Contains(e.err.Error(), reason) {
					t.Errorf("peer: %+v", e)
				}
				err := peer.Send(nil)
				if !errors.Is(err, net.ErrClosed) || !errors.Is(err, c.want) || !strings.Contains(err.Error(), reason) {
					t.Errorf("Send after the peer's Close: %v", err)
				}
				if n := w.listener.Stats().Conns; n != 0 {
					t.Errorf("the listener has %d connections", n)
				}
				if err := conn.Close(); err != nil {
					t.Errorf("second Close: %v", err)
				}
			})
		})
	}
}

func TestListenerCloses(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		w.serverConn(t)
		for range 2 {
			if err := w.listener.Close(); err != nil {
				t.Error(err)
			}
		}
		if e := ended(t, w.server, 0); e.err != nil {
			t.Errorf("server: %+v", e)
		}
		e := ended(t, w.client, time.Second)
		if !errors.Is(e.err, transport.ErrPeerShutdown) {
			t.Errorf("client: %+v", e)
		}
		if err := w.listener.Serve(t.Context(), w.server); err == nil {
			t.Error("a closed listener serves")
		}
	})
}

func TestServeEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := transport.Listen(serverAddr, transport.Config{Network: newNetwork(t, good)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := l.Serve(ctx, &recorder{t: t}); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("served for %v", d)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseWithoutServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		for range 2 { // the address is free again
			l, err := transport.Listen(serverAddr, transport.Config{Network: n})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestCloseInsideHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := transport.Config{Network: newNetwork(t, good)}
		server, client := &recorder{t: t}, &recorder{t: t}
		server.onDatagram = func(c *transport.Conn, _ []byte) { c.CloseWith("enough") }
		l := listen(t, serverAddr, cfg, server)
		conn := dial(t, l.Addr(), cfg, client)
		_ = conn.Send(nil)
		if e := ended(t, server, time.Second); e.err != nil {
			t.Errorf("server: %+v", e)
		}
		if e := ended(t, client, time.Second); !errors.Is(e.err, transport.ErrClosedByPeer) {
			t.Errorf("client: %+v", e)
		}
	})
}

func TestDialedConnClosedInsideHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := transport.Config{Network: newNetwork(t, good)}
		l := listen(t, serverAddr, cfg, &recorder{t: t})
		client := &recorder{t: t}
		client.onOpened = func(c *transport.Conn) { c.CloseWith("") }
		conn, err := transport.Dial(t.Context(), l.Addr().String(), cfg, client)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if e := ended(t, client, 0); e.err != nil {
			t.Errorf("client: %+v", e)
		}
	})
}

func TestTimeoutBothSides(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		w.serverConn(t)
		time.Sleep(3 * time.Second)
		cut := good
		cut.Loss = 1
		if err := w.network.Set(cut, cut); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15*time.Second - 2*time.Second)
		for _, r := range []*recorder{w.client, w.server} {
			if _, closed, _, _ := r.snapshot(); len(closed) > 0 {
				t.Errorf("ended early: %v", closed)
			}
		}
		for _, r := range []*recorder{w.client, w.server} {
			if e := ended(t, r, 3*time.Second); !errors.Is(e.err, transport.ErrTimeout) {
				t.Errorf("ended: %v", e.err)
			}
		}
	})
}

func TestServerRestart(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		w.serverConn(t)
		time.Sleep(time.Second)
		w.silently(t, good, func() { _ = w.listener.Close() })
		second := listen(t, serverAddr, w.cfg, &recorder{t: t})
		start := time.Now()
		for {
			if err := w.conn.Send([]byte("move")); err != nil {
				break
			}
			time.Sleep(time.Second / 60)
		}
		if d := time.Since(start); d > 1200*time.Millisecond {
			t.Errorf("the client noticed after %v", d)
		}
		if e := ended(t, w.client, 0); !errors.Is(e.err, transport.ErrSessionLost) {
			t.Errorf("client: %v", e.err)
		}
		stats := second.Stats()
		if stats.Dropped.UnknownSession < 50 || stats.BytesSent > stats.BytesReceived {
			t.Errorf("second listener: %+v", stats)
		}
		again := dial(t, second.Addr(), w.cfg, &recorder{t: t})
		if again.ID() == w.conn.ID() {
			t.Error("the new connection has the old one's id")
		}
	})
}

func TestHandlerGetsConnsPacketConnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capture := &capturing{Network: newNetwork(t, good)}
		cfg := transport.Config{Network: capture}
		l := listen(t, serverAddr, transport.Config{Network: capture.Network}, &recorder{t: t})
		client := &recorder{t: t}
		dial(t, l.Addr(), cfg, client)
		_ = capture.last.Close()
		if e := ended(t, client, time.Second); !errors.Is(e.err, net.ErrClosed) {
			t.Errorf("client: %v", e.err)
		}
	})
}
