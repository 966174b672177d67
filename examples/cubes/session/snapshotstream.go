package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// dsSnapshotSender sends snapshots over a replication stream. A smaller budget reduces their rate.
type dsSnapshotSender struct {
	streamSender
	pacer
	world  *ds.World[world.Visual]
	areas  *areas // nil without Options.Sight
	stream *ds.SnapshotStream
	sent   int // bytes of traffic subtracted from the pacer's credit
}

// clientSnapshotReceiver interpolates between received snapshots.
type clientSnapshotReceiver struct {
	streamReceiver
	view     *view[*client.SnapshotView[world.Visual]]
	received atomic.Int64 // snapshots since the last Updated
	sample   interpolate.Sample[world.Visual]
}

func newSnapshotStream(e *Endpoints, initial Initial, o Options) (*dsSnapshotSender, *clientSnapshotReceiver, error) {
	name, w, a := "seen", e.visuals, (*areas)(nil)
	if o.Sight > 0 {
		var err error
		name, w = "areas", e.areas
		if a, err = newAreas(&initial, o.Sight); err != nil {
			return nil, nil, err
		}
	}
	r := &clientSnapshotReceiver{streamReceiver: streamReceiver{e.offset}}
	cfg := client.SnapshotConfig[world.Visual]{
		Handle: func(*client.Snapshot[world.Visual]) { r.received.Add(1) },
		Interpolate: &interpolate.Config{
			Interval: o.Interval(), Jitter: o.Jitter, Loss: o.Loss, Adaptive: true,
			MaxDelay: max(time.Second, 8*o.Interval()), Objects: len(initial.Bodies),
		},
		AckHz: world.TickRate,
	}
	r.view = subscribe(e, func(ctx context.Context) (*client.SnapshotView[world.Visual], error) {
		return client.SubscribeSnapshots(ctx, e.conn, name, cfg)
	})
	return &dsSnapshotSender{
		streamSender: streamSender{traffic: newTraffic(w.Stats), endpoints: e, leave: r.view.cancel}, pacer: newPacer(o), world: w, areas: a,
	}, r, nil
}

func (s *dsSnapshotSender) offer(p *ds.Player) (err error) {
	if s.stream, err = s.world.Offer(p); err == nil {
		s.stop = s.stream.Stop
	}
	return err
}

// Send implements Sender.
func (s *dsSnapshotSender) Send(f *Frame, _ func([]byte)) error {
	bytes, _ := s.Traffic()
	due := s.due(f.Tick, bytes-s.sent)
	if s.sent = bytes; !due || s.stream == nil || s.over {
		return nil
	}
	var cells []area.ID
	if s.areas != nil {
		cells = s.areas.move(f.Bodies)
		s.stream.See(s.areas.seen(f.Bodies)...)
	}
	if err := putAll(s.world, s.endpoints.tick(f.Tick), f.Bodies, cells); err != nil {
		return err
	}
	err := s.stream.Send()
	if disconnected(err) {
		return nil
	}
	return err
}

// Draw implements Receiver.
func (r *clientSnapshotReceiver) Draw(_ time.Duration, drawn []world.Visual) (time.Duration, bool) {
	v, ok := r.view.get()
	if !ok || !v.Sample(time.Now(), &r.sample) {
		return 0, false
	}
	for i := range drawn {
		drawn[i] = world.Visual{Unseen: true}
	}
	for i, id := range r.sample.IDs {
		if n, _ := client.SplitID(id); int(n) < len(drawn) {
			drawn[n] = r.sample.Objects[i]
		}
	}
	return r.sample.Time - world.TickTime(r.offset), true
}

// Motion implements Receiver. Nothing is simulated.
func (r *clientSnapshotReceiver) Motion(int) (schema.Vec3, bool) { return schema.Vec3{}, false }

// Updated implements Receiver. A snapshot contains every cube that the client sees.
func (r *clientSnapshotReceiver) Updated(f func(cube int)) {
	for range r.received.Swap(0) {
		for _, id := range r.sample.IDs {
			n, _ := client.SplitID(id)
			f(int(n))
		}
	}
}

// cellSize is the size of the cells of the world, in meters.
const cellSize = 4

// areas divides the world into cells. Each cube is in one of them. The client sees the cubes within
// sight of its own cube.
type areas struct {
	grid  *area.Grid
	watch *area.Watch
	cells []area.ID // cell of each cube
}

func newAreas(initial *Initial, sight float64) (*areas, error) {
	bound := initial.World.Bound
	n := int(2*bound/cellSize) + 1
	grid, err := area.NewGrid(1, -bound, -bound, cellSize, n, n)
	if err != nil {
		return nil, err
	}
	watch, err := area.NewWatch(grid, sight, sight+cellSize/2)
	return &areas{grid: grid, watch: watch, cells: make([]area.ID, len(initial.Bodies))}, err
}

// move returns the cell of each cube. A cube at a border does not change its cell all the time.
func (a *areas) move(bodies []world.Body) []area.ID {
	for i := range bodies {
		a.cells[i] = a.grid.Stay(a.cells[i], bodies[i].Position[0], bodies[i].Position[1], 0.25)
	}
	return a.cells
}

// seen returns the cells that the client sees.
func (a *areas) seen(bodies []world.Body) []area.ID {
	return a.watch.Move(bodies[0].Position[0], bodies[0].Position[1])
}
