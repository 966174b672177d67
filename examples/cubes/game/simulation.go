package game

import "github.com/uplink-rpc/uplink/examples/cubes/world"

// Simulation is a world that counts its ticks, with the state of its cubes at hand. It is not safe for concurrent use.
type Simulation struct {
	world *world.World
	// Tick is how many steps were made.
	Tick int
	// Bodies is the state after that.
	Bodies []world.Body
}

// NewSimulation begins one.
func NewSimulation(p world.Params) (*Simulation, error) {
	w, err := world.New(p)
	if err != nil {
		return nil, err
	}
	s := &Simulation{world: w, Bodies: make([]world.Body, w.Count())}
	w.Bodies(s.Bodies)
	return s, nil
}

// Step simulates one tick.
func (s *Simulation) Step(in world.Input) {
	s.Tick++
	s.world.Step(in, uint32(s.Tick))
	s.world.Bodies(s.Bodies)
}
