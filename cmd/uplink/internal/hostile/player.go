package hostile

import (
	"context"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// player is an honest client. It calls Move and subscribes to both worlds.
type player struct {
	number  int
	hz      float64 // calls a second
	conn    *client.Conn
	streams []*client.Stream[move]
	sent    uint64 // calls
	err     error
}

// newPlayer connects a player that calls Move hz times per second, over as many bindings as needed.
func newPlayer(ctx context.Context, addr string, network transport.Network, t token.Token, number int, hz float64) (*player, error) {
	p := &player{number: number, hz: hz}
	var err error
	if p.conn, err = client.Dial(ctx, addr, client.Config{Token: t, Network: network, NoReconnect: true}); err != nil {
		return nil, fmt.Errorf("player %d: %w", number, err)
	}
	if err := p.join(ctx); err != nil {
		_ = p.conn.Close()
		return nil, fmt.Errorf("player %d: %w", number, err)
	}
	return p, nil
}

func (p *player) join(ctx context.Context) error {
	streams := min(1+int(p.hz)/maxHz, bindings)
	for range streams {
		s, err := client.Bind[move](ctx, p.conn, moveRPC, client.BindConfig{RateHz: min(max(p.hz/float64(streams), 1), maxHz)})
		if err != nil {
			return err
		}
		p.streams = append(p.streams, s)
	}
	if _, err := client.SubscribeSnapshots(ctx, p.conn, snapshotWorld, client.SnapshotConfig[object]{}); err != nil {
		return err
	}
	_, err := client.SubscribeState(ctx, p.conn, stateWorld, client.StateConfig[object]{Handle: func(*client.StateUpdate[object]) {}})
	return err
}

func (p *player) run(ctx context.Context) {
	start, done := time.Now(), uint64(0)
	for range sleep.Every(ctx, max(stepEvery, time.Duration(float64(time.Second)/p.hz))) {
		due := uint64(time.Since(start).Seconds() * p.hz)
		done = max(done, due-min(due, uint64(p.hz/4)+1)) // limit bursts
		for ; done < due; done++ {
			m := moveAt(p.number, done)
			if p.err = p.streams[done%uint64(len(p.streams))].Send(&m); p.err != nil {
				return
			}
			p.sent++
		}
	}
}

func (p *player) datagrams() uint64 { return p.conn.Stats().Transport.DatagramsSent }
