package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/statesync"
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

// dsStateSender sends what a stateSender does, over a replication stream.
type dsStateSender struct {
	streamSender
	stream *ds.StateStream[world.State]
	every  int
	cfg    ds.StateConfig
}

// clientStateReceiver simulates on from received states.
type clientStateReceiver struct {
	streamReceiver
	*simulator
	view   *view[*client.StateView[world.State]]
	inputs []statesync.TickInputs
	cubes  []int
	states []world.State
}

func newStateStream(e *Endpoints, initial Initial, o Options) (*dsStateSender, *clientStateReceiver, error) {
	sim, err := newSimulator(initial, o)
	if err != nil {
		return nil, nil, err
	}
	r := &clientStateReceiver{streamReceiver: streamReceiver{e.offset}, simulator: sim}
	cfg := client.StateConfig[world.State]{AckHz: world.TickRate}
	r.view = subscribe(e, func(ctx context.Context) (*client.StateView[world.State], error) {
		return client.SubscribeState(ctx, e.conn, "state", cfg)
	})
	return &dsStateSender{
		streamSender: streamSender{traffic: newTraffic(e.states.Stats), endpoints: e, leave: r.view.cancel}, every: world.TickRate / o.Rate,
		cfg: ds.StateConfig{Bandwidth: bandwidth(o.Budget), NoDelta: o.NoDelta},
	}, r, nil
}

// bandwidth returns a budget, in bits per second, of at most one datagram per tick.
func bandwidth(bits int) int {
	const maxBandwidth = 8 * world.TickRate * (maxPayload + packetOverhead)
	if bits == 0 {
		return maxBandwidth
	}
	return max(1000, min(bits, maxBandwidth))
}

func (s *dsStateSender) offer(p *ds.Player) (err error) {
	if s.stream, err = s.endpoints.states.OfferState(p, s.cfg); err == nil {
		s.stream.SetViewer(0)
		s.stop = s.stream.Stop
	}
	return err
}

// Send implements Sender.
func (s *dsStateSender) Send(f *Frame, _ func([]byte)) error {
	if s.stream == nil || s.over {
		return nil
	}
	tick := s.endpoints.tick(f.Tick)
	if err := s.stream.AddInputs(tick, statesync.Input{Data: []byte{byte(f.Input)}}); err != nil {
		return err
	}
	if f.Tick%s.every != 0 {
		return nil
	}
	for i := range f.Bodies {
		if err := s.stream.Prioritize(uint16(i), priority(i, &f.Bodies[i])); err != nil {
			return err
		}
	}
	if err := putAll(s.endpoints.states, tick, f.Bodies); err != nil {
		return err
	}
	err := s.stream.Send()
	if disconnected(err) || errors.Is(err, statesync.ErrBudget) { // the user may choose a budget that is too small
		return nil
	}
	return err
}

// SetBudget implements Sender.
func (s *dsStateSender) SetBudget(bits int) {
	s.cfg.Bandwidth = bandwidth(bits)
	if s.stream != nil {
		_ = s.stream.SetBandwidth(s.cfg.Bandwidth, 0) // the value is always valid
	}
}

// Draw implements Receiver.
func (r *clientStateReceiver) Draw(now time.Duration, drawn []world.Visual) (time.Duration, bool) {
	if v, ok := r.view.get(); ok {
		v.Poll(func(u *client.StateUpdate[world.State]) { r.apply(now-time.Since(u.Received), u) })
	}
	return r.simulator.Draw(now, drawn)
}

// apply passes an update to the simulation, in the session's ticks.
func (r *clientStateReceiver) apply(at time.Duration, u *client.StateUpdate[world.State]) {
	tick := int(u.Tick) - r.offset
	if tick < 0 {
		return // of a previous mode
	}
	r.inputs = r.inputs[:0]
	for _, t := range u.Inputs {
		if t.Tick -= int64(r.offset); t.Tick >= 0 {
			r.inputs = append(r.inputs, t)
		}
	}
	r.cubes, r.states = r.cubes[:0], r.states[:0]
	for i := range u.Objects {
		if o := &u.Objects[i]; !o.Gone {
			r.cubes, r.states = append(r.cubes, int(o.ID)), append(r.states, o.State)
		}
	}
	r.accept(at, tick, r.inputs, r.cubes, r.states)
}
