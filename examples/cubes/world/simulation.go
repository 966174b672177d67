package world

import (
	"time"

	"github.com/uplink-rpc/uplink/statesync"
)

const (
	// TickRate is the number of ticks per second.
	TickRate = 60
	// Tick is the time between two ticks.
	Tick = time.Second / TickRate
)

// TickTime returns the time of a tick, which is 0 for tick 0.
func TickTime(tick int) time.Duration { return time.Duration(tick) * time.Second / TickRate }

// Simulation is a World that counts its ticks and keeps the state of its cubes. Not safe for
// concurrent use.
type Simulation struct {
	world *World
	// Tick is the number of the last step.
	Tick int
	// Bodies is the state after the last step.
	Bodies []Body
	// Round makes Step round the state after each step, so that the next step starts from a state
	// that can be sent exactly.
	Round bool
	// Order changes the order in which the solver handles constraints. Two simulations with
	// different orders differ slightly, as on two processors or with two builds of an engine.
	Order    uint32
	rounding *Rounding
	rounded  []Body
}

// NewSimulation returns a simulation of a new world. The error names the parameter that is out of
// bounds.
func NewSimulation(p Params) (*Simulation, error) {
	w, err := New(p)
	if err != nil {
		return nil, err
	}
	r, err := NewRounding()
	if err != nil {
		return nil, err
	}
	s := &Simulation{world: w, Bodies: make([]Body, w.Count()), rounding: r, rounded: make([]Body, w.Count())}
	w.Bodies(s.Bodies)
	return s, nil
}

// Step simulates one tick. It returns an error if a state is outside the bounds of State.
func (s *Simulation) Step(in Input) error {
	s.Tick++
	s.world.Step(in, uint32(s.Tick)^s.Order)
	s.world.Bodies(s.Bodies)
	if !s.Round {
		return nil
	}
	for i := range s.Bodies {
		b := &s.Bodies[i]
		if *b == s.rounded[i] {
			continue // at rest
		}
		if err := s.rounding.round(b); err != nil {
			return err
		}
		s.world.Nudge(i, b)
		s.rounded[i] = *b
	}
	return nil
}

// Set replaces the state of cube i.
func (s *Simulation) Set(i int, b *Body) {
	s.Bodies[i] = *b
	s.world.Set(i, b)
}

// Rounding rounds the state of cubes to the resolution at which it is sent.
type Rounding struct {
	*statesync.Quantizer[State]
	state State
}

// NewRounding returns a Rounding for State.
func NewRounding() (*Rounding, error) {
	q, err := statesync.NewQuantizer[State]("Cube", TickRate)
	return &Rounding{Quantizer: q}, err
}

// round rounds one body. It returns an error if the state is outside the bounds of State.
func (r *Rounding) round(b *Body) error {
	r.state.FromBody(b)
	if err := r.Round(&r.state); err != nil {
		return err
	}
	r.state.ToBody(b)
	return nil
}
