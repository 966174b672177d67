package game

import (
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/schema"
)

// State is all that a simulation goes on from, as state synchronization sends it: finer than what is only looked at, or
// rounding pushes cubes into each other.
type State struct {
	Position    schema.Vec3 `uplink:"resolution=0.000244140625,min=-32,max=32,velocity=Linear"`
	Orientation schema.Quat `uplink:"bits=15,velocity=Angular"`
	Linear      schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32"`
	Angular     schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32"`
	Interacting bool
	Resting     bool `statesync:"rest"`
}

// Take reads a body.
func (s *State) Take(b *world.Body) {
	*s = State{
		Position: vec(b.Position), Orientation: quat(b.Orientation), Linear: vec(b.Linear), Angular: vec(b.Angular),
		Interacting: b.Interacting(), Resting: !b.Moving(),
	}
}

// Give writes a body.
func (s *State) Give(b *world.Body) {
	p, q, l, a := &s.Position, &s.Orientation, &s.Linear, &s.Angular
	b.Position = [3]float64{p.X, p.Y, p.Z}
	b.Orientation = [4]float64{q.X, q.Y, q.Z, q.W}
	b.Linear = [3]float64{l.X, l.Y, l.Z}
	b.Angular = [3]float64{a.X, a.Y, a.Z}
	b.Mark(!s.Resting, s.Interacting)
}
