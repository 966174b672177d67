package session

import (
	"context"
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/statesync"
)

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
