package world

import (
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// Visual is the visible part of a cube's state, as snapshots send it: positions in steps of 1/512
// m, and 9 bits for each of the smallest three components of the orientation.
type Visual struct {
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32" interpolate:"position"`
	Orientation schema.Quat `uplink:"bits=9" interpolate:"orientation"`
	Interacting bool
	// Velocity is sent in full snapshots only. Their rate is so low that interpolation needs it.
	Velocity schema.Vec3 `uplink:"-"`
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
