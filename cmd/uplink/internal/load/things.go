package load

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Thing is an object of the scenarios' world.
type Thing struct {
	Position schema.Vec3 `uplink:"resolution=0.01,min=-1000,max=1000"`
	Rotation schema.Quat `uplink:"bits=11"`
	Lit      bool
}

// thingAt returns object i at a time in seconds. Every third object rests.
func thingAt(i int, t float64) Thing {
	if i%3 == 0 {
		t = 0
	}
	sin, cos := math.Sincos(t + float64(i))
	return Thing{
		Position: schema.Vec3{X: 3*float64(i%16) + 5*cos, Y: 3*float64(i/16) + 5*sin},
		Rotation: schema.Quat{X: sin / 2, Y: cos / 2, Z: 0.3, W: 1},
		Lit:      (int(t)+i)%7 == 0,
	}
}

// Things is a world of objects, which players get as snapshots or as state. It is safe for
// concurrent use.
type Things struct {
	world  *ds.World[Thing]
	count  int
	tickHz float64

	mu      sync.Mutex
	streams map[*ds.Player]*ds.StateStream
}

// NewThings adds a world with a number of objects to a server.
func NewThings(s *ds.Server, name string, count int, tickHz, sendHz float64) (*Things, error) {
	t := &Things{count: count, tickHz: tickHz, streams: map[*ds.Player]*ds.StateStream{}}
	cfg := ds.WorldConfig[Thing]{TickHz: tickHz, SendHz: sendHz, Initial: func(put func(uint16, uint8, *Thing) error) error {
		for i := range count {
			o := thingAt(i, 0)
			if err := put(uint16(i), 0, &o); err != nil {
				return err
			}
		}
		return nil
	}}
	var err error
	t.world, err = ds.NewWorld(s, name, cfg)
	return t, err
}

// Offer offers the world to a player as snapshots.
func (t *Things) Offer(p *ds.Player) { _, _ = t.world.Offer(p) } // fails if the player has left

// OfferState offers the world to a player as state, until [Things.Leave].
func (t *Things) OfferState(p *ds.Player) {
	stream, err := t.world.OfferState(p, ds.StateConfig{})
	if err != nil {
		return // the player has left
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[p] = stream
}

// Leave removes a player that left.
func (t *Things) Leave(p *ds.Player) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, p)
}

// Send sends a tick, which must be higher than those before it.
func (t *Things) Send(tick uint64) {
	t.mu.Lock()
	for _, stream := range t.streams {
		for i := range t.count {
			_ = stream.Prioritize(uint16(i), 1) // the priority is valid
		}
	}
	t.mu.Unlock()
	if t.world.Begin(tick) != nil {
		return // the server is closed
	}
	for i := range t.count {
		o := thingAt(i, float64(tick)/t.tickHz)
		_ = t.world.Put(uint16(i), 0, &o) // the components are within bounds
	}
	_, _ = t.world.Send() // errors of players who leave do not matter
}

// SubscribeThings subscribes a client to the snapshots of a world, and counts them.
func SubscribeThings(ctx context.Context, c *client.Conn, name string, snapshots *atomic.Uint64) error {
	_, err := client.SubscribeSnapshots(ctx, c, name, client.SnapshotConfig[Thing]{
		Handle: func(*client.Snapshot[Thing]) { snapshots.Add(1) },
	})
	return err
}
