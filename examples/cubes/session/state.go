package session

import (
	"errors"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/snapshot"
	"github.com/uplink-rpc/uplink/statesync"
)

// Priorities of cubes. The player's cube is in every packet; moving cubes take precedence over
// resting ones.
const (
	playerPriority = 1_000_000
	movingPriority = 100
	restPriority   = 1
)

// stateSender sends inputs and the states of the cubes with the highest priority.
type stateSender struct {
	every, rate int // ticks between two packets; maximum packets per second
	rounding    *world.Rounding
	sender      *statesync.Sender
	set         *snapshot.Set
	state       world.State
	buf         []byte
}

func newState(initial Initial, o Options) (Sender, Receiver, error) {
	r, err := world.NewRounding()
	if err != nil {
		return nil, nil, err
	}
	sender, err := statesync.NewSender(r.Schema(), stateConfig(r, o))
	if err != nil {
		return nil, nil, err
	}
	sender.SetViewer(0)
	receiver, err := newStateReceiver(initial, o)
	s := &stateSender{rate: o.Rate, rounding: r, sender: sender, set: r.Schema().NewSet()}
	s.SetBudget(o.Budget)
	return s, receiver, err
}

func stateConfig(r *world.Rounding, o Options) statesync.Config {
	return statesync.Config{Velocities: r.Velocities(), Rest: "Resting", NoDelta: o.NoDelta}
}

// minPacket is the minimum room in a packet, in bytes: smaller ones are mostly headers.
const minPacket = 72

// SetBudget implements Sender. It chooses the highest rate at which packets have room for minPacket
// bytes.
func (s *stateSender) SetBudget(bits int) {
	bytes := maxPayload
	s.every = world.TickRate / s.rate
	for ; bits > 0 && s.every <= world.TickRate; s.every++ {
		if world.TickRate%s.every != 0 {
			continue
		}
		bytes = max(0, bits*s.every/(8*world.TickRate)-packetOverhead)
		if bytes >= minPacket {
			break
		}
	}
	_ = s.sender.SetBudget(max(1, min(maxPayload, bytes))) // the value is always valid
}

func (s *stateSender) Send(f *Frame, emit func([]byte)) error {
	if err := s.sender.AddInputs(int64(f.Tick), statesync.Input{Data: []byte{byte(f.Input)}}); err != nil {
		return err
	}
	s.set.Reset()
	for i := range f.Bodies {
		b := &f.Bodies[i]
		if err := s.sender.Prioritize(uint16(i), priority(i, b)); err != nil {
			return err
		}
		s.state.FromBody(b)
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
		return nil // the user may choose a budget that is too small
	case err != nil:
		return err
	}
	s.buf = b
	emit(b)
	return nil
}

func priority(i int, b *world.Body) float64 {
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
