package ds_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/uplinktest"
)

// TestDeclaredWorlds offers a world that was declared before its server, and by their names worlds
// that were declared after it.
func TestDeclaredWorlds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := perfect(t)
		early, err := ds.NewWorld(nil, "early", ds.WorldConfig[mover]{TickHz: 10})
		uplinktest.Must(t, err)
		uplinktest.Must(t, early.Begin(1))
		early.Commit()
		if n, err := early.Send(); n != 0 || err != nil {
			t.Errorf("sent to %d players: %v", n, err)
		}
		var player *ds.Player
		srv := serve(t, network, ds.Config{Joined: func(p *ds.Player) {
			player = p
			_, err := early.Offer(p)
			_, late := p.Offer("late")
			_, state := p.OfferState("state", ds.StateConfig{})
			uplinktest.Must(t, errors.Join(err, late, state))
		}})
		late, err := ds.NewWorld(srv.Server, "late", ds.WorldConfig[mover]{TickHz: 10})
		uplinktest.Must(t, err)
		state, err := ds.NewWorld(srv.Server, "state", ds.WorldConfig[mover]{TickHz: 10})
		uplinktest.Must(t, err)
		conn := uplinktest.Dial(t, network, client.Config{})
		for _, world := range []string{"early", "late"} {
			_, err := client.SubscribeSnapshots(t.Context(), conn, world, client.SnapshotConfig[mover]{})
			uplinktest.Must(t, err)
		}
		_, err = client.SubscribeState(t.Context(), conn, "state", client.StateConfig[mover]{Handle: func(*client.StateUpdate[mover]) {}})
		uplinktest.Must(t, err)
		settle(100 * ms)
		for _, w := range []*ds.World[mover]{early, late, state} {
			uplinktest.Must(t, w.Begin(2))
			m := moverAt(0, 2, never)
			uplinktest.Must(t, w.Put(0, 0, &m))
			uplinktest.Must(t, w.Prioritize(0, 1))
			w.Commit()
			if n, err := w.Send(); n != 1 || err != nil {
				t.Errorf("sent to %d players: %v", n, err)
			}
		}
		_, unknown := player.Offer("lake")
		_, again := ds.NewWorld(srv.Server, "early", ds.WorldConfig[mover]{})
		elsewhere, err := ds.NewWorld(nil, "late", ds.WorldConfig[mover]{})
		uplinktest.Must(t, err)
		_, taken := elsewhere.Offer(player)
		other := uplinktest.Serve(t, perfect(t), ds.Config{}, func(*ds.Server) error { return nil })
		foreign, err := ds.NewWorld(other.Server, "foreign", ds.WorldConfig[mover]{})
		uplinktest.Must(t, err)
		_, wrong := foreign.Offer(player)
		wantErrors(t, "ds: ", map[string]error{
			"no world lake, but early, late, state": unknown, "a world early already": again, "a world late already": taken,
			"belongs to another server": wrong,
		})
		if st := srv.Stats().Replication; len(st) != 3 || st[0].Messages == 0 || st[1].Messages == 0 || st[2].Messages == 0 {
			t.Errorf("%+v", st)
		}
	})
}
