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
	traffic
	endpoints *Endpoints
	stream    *ds.SnapshotStream[world.Visual]
	view      *view[*client.SnapshotView[world.Visual]]
	every     int
	budget    int     // bits per second; 0 means no limit
	credit    float64 // bits
	spent     int     // bytes of traffic subtracted from credit
}

// clientSnapshotReceiver interpolates between received snapshots.
type clientSnapshotReceiver struct {
	view     *view[*client.SnapshotView[world.Visual]]
	offset   int
	count    int
	received atomic.Int64 // snapshots since the last Updated
	sample   interpolate.Sample[world.Visual]
}

func newSnapshotStream(e *Endpoints, initial Initial, o Options) (*dsSnapshotSender, *clientSnapshotReceiver) {
	r := &clientSnapshotReceiver{offset: e.offset, count: len(initial.Bodies)}
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
	s := &dsSnapshotSender{traffic: newTraffic(e.visuals.Stats), endpoints: e, view: r.view, every: world.TickRate / o.Rate, budget: o.Budget}
	return s, r
}

func (s *dsSnapshotSender) offer(p *ds.Player) (err error) {
	s.stream, err = s.endpoints.visuals.Offer(p)
	return err
}

// Send implements Sender.
func (s *dsSnapshotSender) Send(f *Frame, _ func([]byte)) error {
	if !s.due(f.Tick) || s.stream == nil || s.over {
		return nil
	}
	w := s.endpoints.visuals
	if err := w.Begin(s.endpoints.tick(f.Tick)); err != nil {
		return err
	}
	var seen world.Visual
	for i := range f.Bodies {
		seen.FromBody(&f.Bodies[i])
		if err := w.Put(uint16(i), 0, &seen); err != nil {
			return err
		}
	}
	w.Commit()
	err := s.stream.Send()
	if disconnected(err) {
		return nil
	}
	return err
}

// due reports whether to send a snapshot in a tick, within the rate and the budget.
func (s *dsSnapshotSender) due(tick int) bool {
	bytes, _ := s.Traffic()
	if s.budget > 0 {
		s.credit = min(s.credit+float64(s.budget)/world.TickRate, float64(s.budget)/4) - 8*float64(bytes-s.spent)
	}
	s.spent = bytes
	return tick%s.every == 0 && (s.budget == 0 || s.credit >= 0)
}

// Ack implements Sender. The connection carries the acks.
func (s *dsSnapshotSender) Ack([]byte) error { return nil }

// SetBudget implements Sender.
func (s *dsSnapshotSender) SetBudget(bits int) { s.budget = bits }

// Close implements Carrier.
func (s *dsSnapshotSender) Close() error {
	if s.stream != nil {
		s.stream.Stop()
	}
	s.over = true
	return s.view.close()
}

// Receive implements Receiver. The connection carries all messages.
func (r *clientSnapshotReceiver) Receive(time.Duration, []byte) error { return nil }

// Ack implements Receiver. The connection carries the acks.
func (r *clientSnapshotReceiver) Ack(dst []byte) []byte { return dst }

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
