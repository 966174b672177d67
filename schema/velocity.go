package schema

// Velocity declares that a field is the rate of change of another field.
type Velocity struct {
	// Field changes by Of. Both are names of numbers with equally many components; or Field is an
	// angle; or Field is a quaternion and Of its angular velocity, three components about the world
	// axes.
	Field, Of string
	// PerTick is the change of Field in one tick per step of Of, in steps, or in radians for a
	// quaternion.
	PerTick float64
}

// Velocities returns the velocities that the fields declare, for a simulation of s.RateHz() ticks
// per second.
func (s *Schema) Velocities() (out []Velocity) {
	for i := range s.fields {
		f := &s.fields[i]
		if f.Velocity == "" {
			continue
		}
		scale := s.field(f.Velocity).Resolution / s.RateHz() * f.VelocityScale
		if f.Kind != KindQuat {
			scale /= f.Resolution
		}
		out = append(out, Velocity{Field: f.Name, Of: f.Velocity, PerTick: scale})
	}
	return out
}
