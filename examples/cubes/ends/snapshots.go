package ends

import (
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// snapshotSender sends snapshots of the world, the rarer the less its budget allows.
type snapshotSender struct {
	meter
	ends   *Ends
	stream *ds.SnapshotStream[game.Seen]
	view   *view[*client.View[game.Seen]]
	every  int
	budget int     // bits a second; 0 is no limit
	credit float64 // bits
	spent  int     // bytes, of that
}

// snapshotReceiver shows what lies between two of them.
type snapshotReceiver struct {
	view   *view[*client.View[game.Seen]]
	offset int
	count  int
	came   atomic.Int64 // not yet told by Updated
	sample interpolate.Sample[game.Seen]
}

func newSnapshots(e *Ends, at way.Start, o way.Options) (*snapshotSender, *snapshotReceiver) {
	r := &snapshotReceiver{offset: e.offset, count: len(at.Bodies)}
	cfg := client.SnapshotConfig[game.Seen]{
		Handle: func(*client.Snapshot[game.Seen]) { r.came.Add(1) },
		Interpolate: &interpolate.Config{
			Interval: o.Interval(), Jitter: o.Jitter, Loss: o.Loss, Adaptive: true,
			MaxDelay: max(time.Second, 8*o.Interval()), Objects: len(at.Bodies),
		},
		AckHz: game.Rate, Timeout: patience,
	}
	r.view = take(e, func() (*client.View[game.Seen], error) { return client.Snapshots(e.conn, "seen", cfg) })
	s := &snapshotSender{meter: newMeter(e.seen.Stats), ends: e, view: r.view, every: game.Rate / o.Rate, budget: o.Budget}
	return s, r
}

func (s *snapshotSender) offer(p *ds.Player) (err error) {
	s.stream, err = s.ends.seen.Offer(p)
	return err
}

// Send implements way.Sender.
func (s *snapshotSender) Send(f *way.Frame, _ func([]byte)) error {
	if !s.due(f.Tick) || s.stream == nil || s.over {
		return nil
	}
	w := s.ends.seen
	if err := w.Begin(s.ends.tick(f.Tick)); err != nil {
		return err
	}
	var seen game.Seen
	for i := range f.Bodies {
		seen.See(&f.Bodies[i])
		if err := w.Put(uint16(i), 0, &seen); err != nil {
			return err
		}
	}
	w.Commit()
	err := s.stream.Send()
	if away(err) {
		return nil
	}
	return err
}

// due says whether a snapshot leaves in a tick: at the rate, and while what left before is paid for.
func (s *snapshotSender) due(tick int) bool {
	bytes, _ := s.Carried()
	if s.budget > 0 {
		s.credit = min(s.credit+float64(s.budget)/game.Rate, float64(s.budget)/4) - 8*float64(bytes-s.spent)
	}
	s.spent = bytes
	return tick%s.every == 0 && (s.budget == 0 || s.credit >= 0)
}

// Ack implements way.Sender; acks come by the connection.
func (s *snapshotSender) Ack([]byte) error { return nil }

// SetBudget implements way.Sender.
func (s *snapshotSender) SetBudget(bits int) { s.budget = bits }

// Close implements way.Carrier.
func (s *snapshotSender) Close() error {
	if s.stream != nil {
		s.stream.Stop()
	}
	s.over = true
	return s.view.close()
}

// Receive implements way.Receiver; nothing comes but by the connection.
func (r *snapshotReceiver) Receive(time.Duration, []byte) error { return nil }

// Ack implements way.Receiver; acks go by the connection.
func (r *snapshotReceiver) Ack(dst []byte) []byte { return dst }

// Draw implements way.Receiver.
func (r *snapshotReceiver) Draw(_ time.Duration, drawn []game.Seen) (time.Duration, bool) {
	v, ok := r.view.get()
	if !ok || !v.Sample(time.Now(), &r.sample) || len(r.sample.Objects) != len(drawn) {
		return 0, false
	}
	copy(drawn, r.sample.Objects)
	return r.sample.Time - game.Time(r.offset), true
}

// Motion implements way.Receiver: nothing is simulated.
func (r *snapshotReceiver) Motion(int) (schema.Vec3, bool) { return schema.Vec3{}, false }

// Updated implements way.Receiver: a snapshot has every cube.
func (r *snapshotReceiver) Updated(f func(cube int)) {
	for range r.came.Swap(0) {
		for i := range r.count {
			f(i)
		}
	}
}
