package demo

import (
	"context"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/playground"
	"github.com/uplink-rpc/uplink/ds"
)

// joined offers the world to a player, unless enough other clients watch it.
func (d *demo) joined(p *ds.Player) {
	d.world.Join(p, int((p.ClientID()-1)%uint64(len(d.players)))) // see dial
}

func (d *demo) left(p *ds.Player, _ error) { d.world.Leave(p) }

// subscribe subscribes the client with an index to the world, unless enough other clients watch it.
func subscribe(ctx context.Context, conn *client.Conn, index int) error {
	if index >= playground.MaxWatchers {
		return nil
	}
	_, err := client.SubscribeSnapshots(ctx, conn, playground.WorldName, client.SnapshotConfig[playground.Bot]{})
	return err
}
