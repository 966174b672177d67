package schema

// Velocity declares that a field is the rate of change of another field.
type Velocity struct {
	// Of names the field that is the rate of change of Field. Of is a number. Field is a number or
	// an angle with as many components as Of, or a quaternion. For a quaternion, Of is the angular
	// velocity, with three components about the world axes.
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
