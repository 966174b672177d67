package lab

import (
	"math"
	"slices"
	"strings"

	"github.com/uplink-rpc/uplink/schema"
)

// Pose is an actor from above: where it is, where it looks, and where it goes. Units are the recording's; y is up on
// the page, and angles are radians counter-clockwise from x.
type Pose struct {
	X, Y    float64
	Heading float64
	VX, VY  float64
}

// Poser reads poses from the frames of a schema. Not safe for concurrent use.
type Poser struct {
	schema                      *schema.Schema
	position, velocity, heading int // indexes of fields; -1: there is none
	values                      []float64
}

// NewPoser finds the fields that hold the pose. Where a schema has no position, every pose is at the origin.
func NewPoser(s *schema.Schema) *Poser {
	fields := s.Fields()
	first := func(is func(f *schema.Field) bool) int {
		return slices.IndexFunc(fields, func(f schema.Field) bool { return is(&f) })
	}
	p := &Poser{schema: s, velocity: -1}
	p.position = first(func(f *schema.Field) bool { return f.Kind == schema.KindVec3 && named(f, "loc", "pos") })
	if p.position >= 0 && fields[p.position].Velocity != "" {
		p.velocity = first(func(f *schema.Field) bool { return f.Name == fields[p.position].Velocity })
	}
	p.heading = first(func(f *schema.Field) bool {
		return f.Kind == schema.KindQuat || f.Kind == schema.KindAngle && f.Values() >= 2
	})
	return p
}

// named says whether a field's name begins with one of the prefixes.
func named(f *schema.Field, prefixes ...string) bool {
	name := strings.ToLower(f.Name)
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Moves says whether frames tell how fast the actor moves.
func (p *Poser) Moves() bool { return p.velocity >= 0 }

// Pose reads that of a frame.
func (p *Poser) Pose(f *schema.Frame) Pose {
	var at Pose
	if v := p.field(f, p.position); v != nil {
		at.X, at.Y = v[0], v[1]
	}
	if v := p.field(f, p.velocity); v != nil {
		at.VX, at.VY = v[0], v[1]
	}
	switch v := p.field(f, p.heading); len(v) {
	case 0:
	case 4:
		at.Heading = yaw(v[0], v[1], v[2], v[3])
	default: // pitch, yaw
		at.Heading = v[1] * math.Pi / 180
	}
	return at
}

func (p *Poser) field(f *schema.Frame, i int) []float64 {
	if i < 0 {
		return nil
	}
	p.values = p.schema.RestoreField(p.values[:0], f, i)
	return p.values
}

// yaw is the angle of a rotated x axis in the plane from above.
func yaw(x, y, z, w float64) float64 { return math.Atan2(2*(w*z+x*y), 1-2*(y*y+z*z)) }
