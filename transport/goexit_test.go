package transport_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// TestGoexit verifies that a connection survives a handler that calls runtime.Goexit in Datagram or
// Message, at either end.
func TestGoexit(t *testing.T) {
	inWorld(t, good, func(t *testing.T, w *world) {
		s := w.serverConn(t)
		for _, end := range []struct {
			*recorder
			peer *transport.Conn
		}{{w.server, w.conn}, {w.client, s}} {
			exits := 0
			exit := func(_ *transport.Conn, b []byte) {
				if b[0] == 'x' {
					exits++
					runtime.Goexit()
				}
			}
			end.onDatagram, end.onMessage = exit, exit
			for _, text := range []string{"a", "x", "b", "x", "c"} {
				if err := end.peer.Send([]byte(text)); err != nil {
					t.Error(err)
				}
				if err := end.peer.SendReliable([]byte(text)); err != nil {
					t.Error(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			_, closed, datagrams, messages := end.snapshot()
			var texts []string
			for _, m := range messages {
				texts = append(texts, string(m))
			}
			want := []string{"a", "x", "b", "x", "c"}
			if !slices.Equal(datagrams, want) || !slices.Equal(texts, want) || exits != 4 || len(closed) != 0 {
				t.Errorf("datagrams %q, messages %q, want %q; %d exits, closed %v", datagrams, texts, want, exits, closed)
			}
		}
		if err := w.conn.Close(); err != nil {
			t.Error(err)
		}
		if e := ended(t, w.server, time.Second); e.conn != s {
			t.Errorf("server: %+v", e)
		}
	})
}

// TestGoexitInClosed verifies that Closed is called for each connection, and Serve returns,
// although each call ends its goroutine.
func TestGoexitInClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, good)
		cfg := transport.Config{Network: network}
		server := &leaver{recorder: recorder{t: t}}
		l := listen(t, serverAddr, cfg, server)
		for range 3 {
			dial(t, l.Addr(), cfg, &recorder{t: t})
		}
		time.Sleep(time.Second)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, closed, _, _ := server.snapshot(); len(closed) != 3 {
			t.Errorf("%d of 3 connections were closed", len(closed))
		}
	})
}

// leaver is a recorder whose Closed ends its goroutine.
type leaver struct{ recorder }

func (l *leaver) Closed(c *transport.Conn, err error) {
	l.recorder.Closed(c, err)
	runtime.Goexit()
}
