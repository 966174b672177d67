package endpoint_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
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

// TestConnCloses closes one end. Both have an error that wraps the cause and has the text.
func TestConnCloses(t *testing.T) {
	const reason = "kicked"
	for name, c := range map[string]struct {
		server bool // closes
		cause  error
	}{
		"client":          {false, transport.ErrQuit},
		"server":          {true, transport.ErrKicked},
		"server shutdown": {true, transport.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, good, func(t *testing.T, w *world) {
				conn, peer, near, far := w.conn, w.serverConn(t), w.client, w.server
				if c.server {
					conn, peer, near, far = peer, conn, far, near
				}
				conn.CloseWith(c.cause, reason)
				if err := conn.Send(nil); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Send after Close: %v", err)
				}
				if e := ended(t, near, time.Second); e.conn != conn || !errors.Is(e.err, c.cause) {
					t.Errorf("closing end: %+v", e)
				}
				e := ended(t, far, time.Second)
				if e.conn != peer || !errors.Is(e.err, c.cause) || !strings.Contains(e.err.Error(), reason) {
					t.Errorf("peer: %+v", e)
				}
				err := peer.Send(nil)
				if !errors.Is(err, net.ErrClosed) || !errors.Is(err, c.cause) || !strings.Contains(err.Error(), reason) {
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
		if e := ended(t, w.server, 0); !errors.Is(e.err, transport.ErrShutdown) {
			t.Errorf("server: %+v", e)
		}
		if e := ended(t, w.client, time.Second); !errors.Is(e.err, transport.ErrShutdown) {
			t.Errorf("client: %+v", e)
		}
		if err := w.listener.Serve(t.Context(), w.server); err == nil {
			t.Error("a closed listener serves")
		}
	})
}

// TestServeEnds closes a listener that serves until its context is done, and two that do not serve:
// the address is free again.
func TestServeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, good)
		for _, serve := range []bool{true, false, false} {
			l, err := endpoint.Listen(serverAddr, endpoint.Config{Network: n})
			if err != nil {
				t.Fatal(err)
			}
			if serve {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if err := l.Serve(ctx, &recorder{t: t}); err != nil || time.Since(start) != time.Second {
					t.Errorf("served for %v: %v", time.Since(start), err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestCloseInsideHandler(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		_ = w.conn.Send(nil)
		if e := ended(t, w.server, time.Second); !errors.Is(e.err, transport.ErrKicked) {
			t.Errorf("server: %+v", e)
		}
		if e := ended(t, w.client, time.Second); !errors.Is(e.err, transport.ErrKicked) {
			t.Errorf("client: %+v", e)
		}
	}, func(w *world) {
		w.server.onDatagram = func(c *endpoint.Conn, _ []byte) { c.CloseWith(transport.ErrKicked, "enough") }
	})
}

func TestDialedConnClosedInsideHandler(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		if err := w.conn.Close(); err != nil {
			t.Error(err)
		}
		if e := ended(t, w.client, 0); !errors.Is(e.err, transport.ErrQuit) {
			t.Errorf("client: %+v", e)
		}
	}, func(w *world) { w.client.onOpened = func(c *endpoint.Conn) { c.CloseWith(transport.ErrQuit, "") } })
}

func TestTimeoutBothSides(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		w.serverConn(t)
		time.Sleep(3 * time.Second)
		w.cut(t)
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
		w.cut(t)
		_ = w.listener.Close()
		w.set(t, good)
		second := listen(t, serverAddr, w.cfg, &recorder{t: t})
		start := time.Now()
		for w.conn.Send([]byte("move")) == nil {
			time.Sleep(time.Second / 60)
		}
		if d := time.Since(start); d > 1200*time.Millisecond {
			t.Errorf("the client noticed after %v", d)
		}
		if e := ended(t, w.client, 0); !errors.Is(e.err, transport.ErrUnknown) {
			t.Errorf("client: %v", e.err)
		}
		stats := second.Stats()
		if stats.Dropped.UnknownSession < 50 || stats.BytesSent > stats.BytesReceived {
			t.Errorf("second listener: %+v", stats)
		}
		if again := dial(t, second.Addr(), w.cfg, &recorder{t: t}); again.ID() == w.conn.ID() {
			t.Error("the new connection has the old one's id")
		}
	})
}

func TestHandlerGetsConnsPacketConnError(t *testing.T) {
	var pc transport.PacketConn
	inWorld(t, good, func(t *testing.T, w *world) {
		_ = pc.Close()
		if e := ended(t, w.client, time.Second); !errors.Is(e.err, net.ErrClosed) {
			t.Errorf("client: %v", e.err)
		}
	}, func(w *world) {
		w.cfg.Network = hooked{w.network, func(p transport.PacketConn) transport.PacketConn {
			pc = p
			return p
		}}
	})
}

func TestDialGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := endpoint.Config{Network: newNetwork(t, good), Timeout: 3 * time.Second}
		start := time.Now()
		_, err := endpoint.Dial(t.Context(), serverAddr, cfg, &recorder{t: t})
		if !errors.Is(err, transport.ErrTimeout) || time.Since(start) > 4*time.Second {
			t.Errorf("no listener: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		_, err = endpoint.Dial(ctx, serverAddr, cfg, &recorder{t: t})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("context: %v after %v", err, time.Since(start))
		}
	})
}

// TestGoexit verifies that a connection survives a handler that calls runtime.Goexit in Datagram or
// Message, at either end, and that Closed is called, and Serve returns, although Closed does too.
func TestGoexit(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		s := w.serverConn(t)
		w.server.onClosed = func(*endpoint.Conn, error) { runtime.Goexit() }
		for _, end := range []struct {
			*recorder
			peer *endpoint.Conn
		}{{w.server, w.conn}, {w.client, s}} {
			exits := 0
			exit := func(_ *endpoint.Conn, b []byte) {
				if b[0] == 'x' {
					exits++
					runtime.Goexit()
				}
			}
			end.onDatagram, end.onMessage = exit, exit
			want := []string{"a", "x", "b", "x", "c"}
			for _, text := range want {
				if err := errors.Join(end.peer.Send([]byte(text)), end.peer.SendReliable([]byte(text))); err != nil {
					t.Error(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			_, closed, datagrams, messages := end.snapshot()
			if !slices.Equal(datagrams, want) || string(bytes.Join(messages, nil)) != "axbxc" || exits != 4 || len(closed) != 0 {
				t.Errorf("datagrams %q, messages %q, want %q; %d exits, closed %v", datagrams, messages, want, exits, closed)
			}
		}
		dial(t, w.listener.Addr(), w.cfg, &recorder{t: t})
		time.Sleep(time.Second)
		if err := w.listener.Close(); err != nil {
			t.Error(err)
		}
		if _, closed, _, _ := w.server.snapshot(); len(closed) != 2 {
			t.Errorf("%d of 2 connections were closed", len(closed))
		}
	})
}
