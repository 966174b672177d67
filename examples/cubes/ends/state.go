package ends

import (
	"errors"
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/lane"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/statesync"
)

// stateSender sends inputs, and the state of the cubes that matter most.
type stateSender struct {
	meter
	ends   *Ends
	stream *ds.StateStream[game.State]
	view   *view[*client.StateView[game.State]]
	every  int
	cfg    ds.StateConfig
}

// stateReceiver simulates on from what comes.
type stateReceiver struct {
	*way.Simulator
	view   *view[*client.StateView[game.State]]
	offset int
	inputs []statesync.TickInputs
	cubes  []int
	states []game.State
}

func newState(e *Ends, at way.Start, o way.Options) (*stateSender, *stateReceiver, error) {
	sim, err := way.NewSimulator(at, o)
	if err != nil {
		return nil, nil, err
	}
	r := &stateReceiver{Simulator: sim, offset: e.offset}
	cfg := client.StateConfig[game.State]{AckHz: game.Rate, Timeout: patience}
	r.view = take(e, func() (*client.StateView[game.State], error) { return client.States(e.conn, "state", cfg) })
	return &stateSender{
		meter: newMeter(e.state.Stats), ends: e, view: r.view, every: game.Rate / o.Rate,
		cfg: ds.StateConfig{Bandwidth: bandwidth(o.Budget), NoDelta: o.NoDelta},
	}, r, nil
}

// bandwidth is what a budget allows, at most a datagram in each tick.
func bandwidth(bits int) int {
	const most = 8 * game.Rate * (lane.Whole + lane.Overhead)
	if bits == 0 {
		return most
	}
	return max(1000, min(bits, most))
}

func (s *stateSender) offer(p *ds.Player) (err error) {
	if s.stream, err = s.ends.state.OfferState(p, s.cfg); err == nil {
		s.stream.SetViewer(0)
	}
	return err
}

// Send implements way.Sender.
func (s *stateSender) Send(f *way.Frame, _ func([]byte)) error {
	if s.stream == nil || s.over {
		return nil
	}
	tick := s.ends.tick(f.Tick)
	if err := s.stream.AddInputs(tick, statesync.Input{Data: []byte{byte(f.Input)}}); err != nil {
		return err
	}
	if f.Tick%s.every != 0 {
		return nil
	}
	w := s.ends.state
	if err := w.Begin(tick); err != nil {
		return err
	}
	var state game.State
	for i := range f.Bodies {
		b := &f.Bodies[i]
		if err := s.stream.Prioritize(uint16(i), way.Priority(i, b)); err != nil {
			return err
		}
		state.Take(b)
		if err := w.Put(uint16(i), 0, &state); err != nil {
			return err
		}
	}
	w.Commit()
	err := s.stream.Send()
	if away(err) || errors.Is(err, statesync.ErrBudget) { // the budget is the visitor's
		return nil
	}
	return err
}

// Ack implements way.Sender; acks come by the connection.
func (s *stateSender) Ack([]byte) error { return nil }

// SetBudget implements way.Sender.
func (s *stateSender) SetBudget(bits int) {
	s.cfg.Bandwidth = bandwidth(bits)
	if s.stream != nil {
		_ = s.stream.SetBandwidth(s.cfg.Bandwidth, 0) // it is within bounds
	}
}

// Close implements way.Carrier.
func (s *stateSender) Close() error {
	if s.stream != nil {
		s.stream.Stop()
	}
	s.over = true
	return s.view.close()
}

// Receive implements way.Receiver; nothing comes but by the connection.
func (r *stateReceiver) Receive(time.Duration, []byte) error { return nil }

// Ack implements way.Receiver; acks go by the connection.
func (r *stateReceiver) Ack(dst []byte) []byte { return dst }

// Draw implements way.Receiver.
func (r *stateReceiver) Draw(now time.Duration, drawn []game.Seen) (time.Duration, bool) {
	if v, ok := r.view.get(); ok {
		v.Poll(func(u *client.StateUpdate[game.State]) { r.take(now-time.Since(u.Received), u) })
	}
	return r.Simulator.Draw(now, drawn)
}

// take hands the simulation an update, in the game's ticks.
func (r *stateReceiver) take(at time.Duration, u *client.StateUpdate[game.State]) {
	tick := int(u.Tick) - r.offset
	if tick < 0 {
		return // of another way
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
	r.Take(at, tick, r.inputs, r.cubes, r.states)
}
