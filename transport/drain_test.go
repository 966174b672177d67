package transport_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// TestConnShutdown tells the peer that this end goes away as a whole.
func TestConnShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, good)
		w.serverConn(t).Shutdown("maintenance")
		if e := ended(t, w.client, time.Second); !errors.Is(e.err, transport.ErrPeerShutdown) || !strings.Contains(e.err.Error(), "maintenance") {
			t.Errorf("client: %+v", e)
		}
	})
}

// TestUnacked: what is sent reliably counts until the peer has it.
func TestUnacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, good)
		if n := w.conn.Unacked(); n != 0 {
			t.Errorf("%d segments at first", n)
		}
		for range 3 {
			if err := w.conn.SendReliable(make([]byte, 2000)); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.conn.Unacked(); n != 6 {
			t.Errorf("%d segments of three messages", n)
		}
		time.Sleep(2 * time.Second)
		if n := w.conn.Unacked(); n != 0 {
			t.Errorf("%d segments at last", n)
		}
	})
}
