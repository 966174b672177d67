package way

import (
	"errors"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/lane"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// What cubes count: the player's always goes, what moves goes before what rests.
const (
	playerPriority = 1_000_000
	movingPriority = 100
	restPriority   = 1
)

// stateSender sends the state of the cubes that matter most, and the inputs.
type stateSender struct {
	every, rate int // ticks between two packets; packets a second at most
	rounding    *game.Rounding
	sender      *statesync.Sender
	set         *snapshot.Set
	state       game.State
	buf         []byte
}

func newState(at Start, o Options) (Sender, Receiver, error) {
	r, err := game.NewRounding()
	if err != nil {
		return nil, nil, err
	}
	sender, err := statesync.NewSender(r.Schema(), stateConfig(r, o))
	if err != nil {
		return nil, nil, err
	}
	sender.SetViewer(0)
	receiver, err := newStateReceiver(at, o)
	s := &stateSender{rate: o.Rate, rounding: r, sender: sender, set: r.Schema().NewSet()}
	s.SetBudget(o.Budget)
	return s, receiver, err
}

func stateConfig(r *game.Rounding, o Options) statesync.Config {
	return statesync.Config{Velocities: r.Velocities(), Rest: "Resting", NoDelta: o.NoDelta}
}

// least is how many bytes a packet should have room for: with fewer, headers take most of the budget.
const least = 72

// SetBudget has packets of up to a datagram, at the full rate while they have some size in it.
func (s *stateSender) SetBudget(bits int) {
	bytes := lane.Whole
	s.every = game.Rate / s.rate
	for ; bits > 0 && s.every <= game.Rate; s.every++ {
		if game.Rate%s.every != 0 {
			continue
		}
		bytes = statesync.BytesPerPacket(float64(bits)/1000, game.Rate/float64(s.every), lane.Overhead)
		if bytes >= least {
			break
		}
	}
	_ = s.sender.SetBudget(max(1, min(lane.Whole, bytes))) // which is within bounds
}

func (s *stateSender) Send(f *Frame, emit func([]byte)) error {
	if err := s.sender.AddInputs(int64(f.Tick), statesync.Input{Data: []byte{byte(f.Input)}}); err != nil {
		return err
	}
	s.set.Reset()
	for i := range f.Bodies {
		b := &f.Bodies[i]
		if err := s.sender.Prioritize(uint16(i), Priority(i, b)); err != nil {
			return err
		}
		s.state.Take(b)
		if err := s.rounding.Add(s.set, snapshot.Object{ID: uint16(i)}, &s.state); err != nil {
			return err
		}
	}
	if f.Tick%s.every != 0 {
		return nil
	}
	b, _, err := s.sender.Append(s.buf[:0], int64(f.Tick), s.set)
	switch {
	case errors.Is(err, statesync.ErrBudget):
		return nil // the budget is the visitor's
	case err != nil:
		return err
	}
	s.buf = b
	emit(b)
	return nil
}

// Priority is how much a cube matters.
func Priority(i int, b *world.Body) float64 {
	switch {
	case i == 0:
		return playerPriority
	case b.Moving():
		return movingPriority
	}
	return restPriority
}

func (s *stateSender) Ack(b []byte) error {
	a, _, err := statesync.ParseAck(b)
	if err != nil {
		return err
	}
	return s.sender.Ack(a)
}
