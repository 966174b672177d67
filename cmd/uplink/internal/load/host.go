package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/sleep"
	"github.com/uplink-rpc/uplink/ds"
)

// Host is a running dedicated server.
type Host struct {
	*ds.Server
	stop   context.CancelFunc
	work   sync.WaitGroup
	served error
}

// Serve runs a server until [Host.Close], and calls tick hz times a second with ascending numbers
// from 1 on. Ticks for which the process is too slow are dropped.
func Serve(s *ds.Server, hz int, tick func(n uint64)) *Host {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Host{Server: s, stop: cancel}
	h.work.Go(func() { h.served = s.Serve(context.Background()) })
	h.work.Go(func() {
		n := uint64(0)
		for range sleep.Every(ctx, time.Second/time.Duration(hz)) {
			n++
			tick(n)
		}
	})
	return h
}

// Close stops the server. It returns the error that ended it before.
func (h *Host) Close() error {
	h.stop()
	err := h.Server.Close()
	h.work.Wait()
	return errors.Join(err, h.served)
}

// Things is a small world of objects that move.
type Things struct{ world *ds.World[thing] }

type thing struct {
	X, Y float32 `uplink:"resolution=0.1,min=-1000,max=1000"`
}

const (
	thingsName = "things"
	things     = 16
	// ThingsHz is the rate of ticks of Things.
	ThingsHz = 10
)

// NewThings adds the world to a server.
func NewThings(s *ds.Server) (*Things, error) {
	w, err := ds.NewWorld(s, thingsName, ds.WorldConfig[thing]{TickHz: ThingsHz})
	return &Things{w}, err
}

// Offer offers the world to a player.
func (t *Things) Offer(p *ds.Player) { _, _ = t.world.Offer(p) } // fails if it has left

// Send sends a tick of the world, which must be higher than those before it.
func (t *Things) Send(tick uint64) {
	if t.world.Begin(tick) != nil {
		return // the server is closed
	}
	for i := range uint64(things) {
		_ = t.world.Put(uint16(i), 0, &thing{float32(i * 10), float32((tick + i) % 1000)}) // within its bounds
	}
	_, _ = t.world.Send() // errors of leaving players do not matter
}

// SubscribeThings subscribes a client to the world, and counts its snapshots.
func SubscribeThings(ctx context.Context, c *client.Conn, snapshots *atomic.Uint64) error {
	_, err := client.SubscribeSnapshots(ctx, c, thingsName, client.SnapshotConfig[thing]{
		Handle: func(*client.Snapshot[thing]) { snapshots.Add(1) },
	})
	return err
}
