package client_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// TestSetRedundancy changes the redundancy while a client calls over a lossy link. It applies to
// bound RPCs, to those that are bound later, and after a reconnection.
func TestSetRedundancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dialMatch(t, 0.3, 5, client.Config{Redundancy: rpcdelta.RedundancyOff, Timeout: 3 * time.Second})
		conn := m.conn
		// missed returns the share of frames that do not arrive within 20 s.
		missed := func() float64 {
			before := m.srv.Stats().RPCs[0]
			m.call(20 * time.Second)
			after := m.srv.Stats().RPCs[0]
			lost, came := float64(after.Missed-before.Missed), float64(after.Frames()-before.Frames())
			return lost / (lost + came)
		}
		expect := func(what string, redundancy int, lo, hi float64) {
			t.Helper()
			if share := missed(); share < lo || share > hi {
				t.Errorf("%s: %.3f of the frames are missed, want %v to %v", what, share, lo, hi)
			}
			if got := m.move.Stats().Redundancy; got != redundancy {
				t.Errorf("%s: redundancy %d, want %d", what, got, redundancy)
			}
		}
		expect("off", 0, 0.25, 0.35)
		uplinktest.Must(t, conn.SetRedundancy(3))
		expect("3", 3, 0, 0.03)
		uplinktest.Must(t, conn.SetRedundancy(rpcdelta.RedundancyOff))
		expect("off again", 0, 0.25, 0.35)

		uplinktest.Must(t, conn.SetRedundancy(2))
		m.setLinks(newLink(1))
		m.call(10 * time.Second)
		m.setLinks(newLink(0.3))
		m.call(20 * time.Second)
		expect("2, connected again", 2, 0, 0.05)
		second := uplinktest.Bind(t, conn, "Move")
		if got := second.Stats().Redundancy; got != 2 {
			t.Errorf("an RPC that is bound later has redundancy %d", got)
		}

		if err := conn.SetRedundancy(8); err == nil || !strings.HasPrefix(err.Error(), "client: SetRedundancy: ") {
			t.Errorf("8: %v", err)
		}
		if got := second.Stats().Redundancy; got != 2 {
			t.Errorf("after an error: redundancy %d", got)
		}
	})
}
