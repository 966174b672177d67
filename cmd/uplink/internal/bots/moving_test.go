package bots

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// TestMoving moves bots with tokens of their own to other sockets, across a restart of the server.
func TestMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := uplinktest.NewNetwork(t, simnet.Config{Delay: 10 * ms}, simnet.Config{Delay: 10 * ms})
		key, err := token.NewKey()
		uplinktest.Must(t, err)
		clients := map[uint64]int{}
		var moves uint64
		cfg := ds.Config{
			Key:    key,
			Joined: func(p *ds.Player) { clients[p.ClientID()]++ },
			Left:   func(p *ds.Player, _ error) { moves += p.Stats().Transport.PathMigrations },
		}
		_, srv := serve(t, network, cfg)
		o := options(network, 4)
		o.Issuer, o.RebindEvery, o.For = key.Issuer(), 2*time.Second, 20*time.Second
		seconds := 0
		report, err := Run(t.Context(), traces(), o, func(Progress) {
			if seconds++; seconds == 10 {
				uplinktest.Must(t, srv.Close())
				<-srv.Served
				_, srv = serve(t, network, cfg)
			}
		})
		uplinktest.Must(t, err)
		uplinktest.Must(t, srv.Close())
		p := report.Players
		if p.Rebinds < 36 || p.Rebinds > 44 || p.Reconnections != 4 || p.Connected != 4 || moves < p.Rebinds*8/10 {
			t.Errorf("%+v, and %d moves", p, moves)
		}
		if len(clients) != 4 {
			t.Errorf("client ids and their connections: %v", clients)
		}
	})
}
