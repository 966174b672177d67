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

// TestSetRedundancy changes it while calls are made over a lossy link: it holds for RPCs that are bound, for those
// that are bound later, and after a reconnection.
func TestSetRedundancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0.3, 5)
		journal := uplinktest.NewJournal(t, 1)
		srv := serve(t, network, journal)
		conn := uplinktest.Dial(t, network, client.Config{Redundancy: rpcdelta.RedundancyOff, Timeout: 3 * time.Second})
		c := caller{stream: uplinktest.Bind(t, conn, "Move")}
		// missed plays, and gives the share of frames that did not arrive.
		missed := func() float64 {
			before := srv.Stats().RPCs[0]
			c.call(t, 1, 20*time.Second)
			after := srv.Stats().RPCs[0]
			lost, came := float64(after.Missed-before.Missed), float64(after.Frames()-before.Frames())
			return lost / (lost + came)
		}
		expect := func(what string, older int, lo, hi float64) {
			t.Helper()
			if share := missed(); share < lo || share > hi {
				t.Errorf("%s: %.3f of the frames are missed, want %v to %v", what, share, lo, hi)
			}
			if got := c.stream.Stats().Redundancy; got != older {
				t.Errorf("%s: redundancy %d, want %d", what, got, older)
			}
		}
		expect("off", 0, 0.25, 0.35)
		uplinktest.Must(t, conn.SetRedundancy(3))
		expect("3", 3, 0, 0.03)
		uplinktest.Must(t, conn.SetRedundancy(rpcdelta.RedundancyOff))
		expect("off again", 0, 0.25, 0.35)

		uplinktest.Must(t, conn.SetRedundancy(2))
		dead, lossy := newLink(1), newLink(0.3)
		uplinktest.Must(t, network.Set(dead, dead))
		c.call(t, 1, 10*time.Second)
		uplinktest.Must(t, network.Set(lossy, lossy))
		c.call(t, 1, 20*time.Second)
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
