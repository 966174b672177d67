package world

import (
	"time"

	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
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

// Visual is the visible part of a cube's state, as snapshots send it: positions in steps of 1/512
// m, and 9 bits for each of the smallest three components of the orientation.
type Visual struct {
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32" interpolate:"position"`
	Orientation schema.Quat `uplink:"bits=9" interpolate:"orientation"`
	Interacting bool
	// Velocity is sent in full snapshots only. Their rate is so low that interpolation needs it.
	Velocity schema.Vec3 `uplink:"-"`
	// Unseen is set by a client for a cube outside of the areas that it sees.
	Unseen bool `uplink:"-"`
}

// FromBody sets v to the visible state of b.
func (v *Visual) FromBody(b *Body) {
	*v = Visual{Position: vec(b.Position), Orientation: quat(b.Orientation), Interacting: b.Interacting(), Velocity: vec(b.Linear)}
}

// PoseAdapter implements interpolate.Adapter for Visual.
type PoseAdapter struct{}

// Pose returns the pose of v.
func (PoseAdapter) Pose(v *Visual) interpolate.Pose {
	return interpolate.Pose{Position: v.Position, Orientation: v.Orientation, Velocity: v.Velocity}
}

// SetPose replaces the pose of v.
func (PoseAdapter) SetPose(v *Visual, p interpolate.Pose) {
	v.Position, v.Orientation, v.Velocity = p.Position, p.Orientation, p.Velocity
}

// State is the whole state of a cube, as state synchronization sends it. Its resolution is higher
// than that of Visual, because the client simulates on from it: coarse rounding pushes cubes into
// each other.
type State struct {
	Position    schema.Vec3 `uplink:"resolution=0.000244140625,min=-32,max=32,velocity=Linear"`
	Orientation schema.Quat `uplink:"bits=15,velocity=Angular"`
	Linear      schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32"`
	Angular     schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32"`
	Interacting bool
	Resting     bool `statesync:"rest"`
}

// FromBody sets s to the state of b.
func (s *State) FromBody(b *Body) {
	*s = State{
		Position: vec(b.Position), Orientation: quat(b.Orientation), Linear: vec(b.Linear), Angular: vec(b.Angular),
		Interacting: b.Interacting(), Resting: !b.Moving(),
	}
}

// ToBody sets b to the state s.
func (s *State) ToBody(b *Body) {
	p, q, l, a := &s.Position, &s.Orientation, &s.Linear, &s.Angular
	b.Position = [3]float64{p.X, p.Y, p.Z}
	b.Orientation = [4]float64{q.X, q.Y, q.Z, q.W}
	b.Linear = [3]float64{l.X, l.Y, l.Z}
	b.Angular = [3]float64{a.X, a.Y, a.Z}
	b.Mark(!s.Resting, s.Interacting)
}

func vec(v [3]float64) schema.Vec3  { return schema.Vec3{X: v[0], Y: v[1], Z: v[2]} }
func quat(q [4]float64) schema.Quat { return schema.Quat{X: q[0], Y: q[1], Z: q[2], W: q[3]} }
