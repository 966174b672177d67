package game

import (
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/schema"
)

// Seen is what of a cube is to be seen, as snapshots send it: 512 steps a meter, 9 bits for each of an orientation's
// smallest three.
type Seen struct {
	Position    schema.Vec3 `uplink:"resolution=0.001953125,min=-32,max=32" interpolate:"position"`
	Orientation schema.Quat `uplink:"bits=9" interpolate:"orientation"`
	Interacting bool
	// Velocity stays at home but for full snapshots, which are so few that the way between two is bent.
	Velocity schema.Vec3 `uplink:"-"`
}

// See reads a body.
func (s *Seen) See(b *world.Body) {
	*s = Seen{Position: vec(b.Position), Orientation: quat(b.Orientation), Interacting: b.Interacting(), Velocity: vec(b.Linear)}
}

// Poses tells package interpolate of Seen.
type Poses struct{}

// Pose implements interpolate.Adapter.
func (Poses) Pose(s *Seen) interpolate.Pose {
	return interpolate.Pose{Position: s.Position, Orientation: s.Orientation, Velocity: s.Velocity}
}

// SetPose implements interpolate.Adapter.
func (Poses) SetPose(s *Seen, p interpolate.Pose) {
	s.Position, s.Orientation, s.Velocity = p.Position, p.Orientation, p.Velocity
}

func vec(v [3]float64) schema.Vec3  { return schema.Vec3{X: v[0], Y: v[1], Z: v[2]} }
func quat(q [4]float64) schema.Quat { return schema.Quat{X: q[0], Y: q[1], Z: q[2], W: q[3]} }
