package game

import "github.com/uplink-rpc/uplink/examples/cubes/world"

// Simulation is a world that counts its ticks, with the state of its cubes at hand. It is not safe for concurrent use.
type Simulation struct {
	world *world.World
	// Tick is the number of the last step.
	Tick int
	// Bodies is the state after that.
	Bodies []world.Body
	// Round has the state rounded after each step, so that the next one goes on from what can be sent.
	Round bool
	// Order chooses in which order the solver takes constraints, beside the tick. Ends whose order differs do nearly the
	// same, as two processors or builds of an engine do.
	Order    uint32
	rounding *Rounding
	rounded  []world.Body
}

// NewSimulation begins one.
func NewSimulation(p world.Params) (*Simulation, error) {
	w, err := world.New(p)
	if err != nil {
		return nil, err
	}
	r, err := NewRounding()
	if err != nil {
		return nil, err
	}
	s := &Simulation{world: w, Bodies: make([]world.Body, w.Count()), rounding: r, rounded: make([]world.Body, w.Count())}
	w.Bodies(s.Bodies)
	return s, nil
}

// Step simulates one tick. An error says that a state cannot be sent.
func (s *Simulation) Step(in world.Input) error {
	s.Tick++
	s.world.Step(in, uint32(s.Tick)^s.Order)
	s.world.Bodies(s.Bodies)
	if !s.Round {
		return nil
	}
	for i := range s.Bodies {
		b := &s.Bodies[i]
		if *b == s.rounded[i] {
			continue // it rests
		}
		if err := s.rounding.body(b); err != nil {
			return err
		}
		s.world.Nudge(i, b)
		s.rounded[i] = *b
	}
	return nil
}

// Set replaces the state of one cube.
func (s *Simulation) Set(i int, b *world.Body) {
	s.Bodies[i] = *b
	s.world.Set(i, b)
}
