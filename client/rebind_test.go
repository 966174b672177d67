package client_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestRebind has a client go on from other sockets while it sends.
func TestRebind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t, 0, 1)
		journal := uplinktest.NewJournal(t, 1)
		serve(t, network, journal)
		conn := uplinktest.Dial(t, network, client.Config{})
		move := uplinktest.Bind(t, conn, "Move")
		for n := range uint64(300) {
			m := uplinktest.MoveAt(1, n)
			uplinktest.Must(t, move.Send(&m))
			if n%100 == 50 {
				uplinktest.Must(t, conn.Rebind())
			}
			time.Sleep(time.Second / 60)
		}
		settle(time.Second)
		l := journal.Only()
		if moves := l.Player.Stats().Transport.PathMigrations; moves != 3 || l.Next != 300 || l.Missed > 3*60 {
			t.Errorf("%d moves; %+v", moves, l)
		}
		uplinktest.Must(t, conn.Close())
		if err := conn.Rebind(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
