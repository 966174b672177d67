package schema

// Velocity declares that a field is the rate of change of another field.
type Velocity struct {
	// Of names the field that is the rate of change of Field. Of contains numbers. Field contains
	// numbers or angles, as many as Of, or it is a quaternion. For a quaternion, Of is the angular
	// velocity: three numbers, about the world axes.
	Field, Of string
	// PerTick is the change of Field in one tick if Of is one step. Its unit is a step of Field, or
	// radians for a quaternion.
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
