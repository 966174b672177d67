package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// dsSnapshotSender sends snapshots over a replication stream. A smaller budget reduces their rate.
type dsSnapshotSender struct {
	streamSender
	pacer
	stream *ds.SnapshotStream[world.Visual]
	sent   int // bytes of traffic subtracted from the pacer's credit
}

// clientSnapshotReceiver interpolates between received snapshots.
type clientSnapshotReceiver struct {
	streamReceiver
	view     *view[*client.SnapshotView[world.Visual]]
	count    int
	received atomic.Int64 // snapshots since the last Updated
	sample   interpolate.Sample[world.Visual]
}

func newSnapshotStream(e *Endpoints, initial Initial, o Options) (*dsSnapshotSender, *clientSnapshotReceiver) {
	r := &clientSnapshotReceiver{streamReceiver: streamReceiver{e.offset}, count: len(initial.Bodies)}
	cfg := client.SnapshotConfig[world.Visual]{
		Handle: func(*client.Snapshot[world.Visual]) { r.received.Add(1) },
		Interpolate: &interpolate.Config{
			Interval: o.Interval(), Jitter: o.Jitter, Loss: o.Loss, Adaptive: true,
			MaxDelay: max(time.Second, 8*o.Interval()), Objects: len(initial.Bodies),
		},
		AckHz: world.TickRate,
	}
	r.view = subscribe(e, func(ctx context.Context) (*client.SnapshotView[world.Visual], error) {
		return client.SubscribeSnapshots(ctx, e.conn, "seen", cfg)
	})
	return &dsSnapshotSender{streamSender: streamSender{traffic: newTraffic(e.visuals.Stats), endpoints: e, leave: r.view.cancel}, pacer: newPacer(o)}, r
}

func (s *dsSnapshotSender) offer(p *ds.Player) (err error) {
	if s.stream, err = s.endpoints.visuals.Offer(p); err == nil {
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
	if err := putAll(s.endpoints.visuals, s.endpoints.tick(f.Tick), f.Bodies); err != nil {
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
	if !ok || !v.Sample(time.Now(), &r.sample) || len(r.sample.Objects) != len(drawn) {
		return 0, false
	}
	copy(drawn, r.sample.Objects)
	return r.sample.Time - world.TickTime(r.offset), true
}

// Motion implements Receiver. Nothing is simulated.
func (r *clientSnapshotReceiver) Motion(int) (schema.Vec3, bool) { return schema.Vec3{}, false }

// Updated implements Receiver. A snapshot contains every cube.
func (r *clientSnapshotReceiver) Updated(f func(cube int)) {
	for range r.received.Swap(0) {
		for i := range r.count {
			f(i)
		}
	}
}
