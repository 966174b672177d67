package schema

import (
	"fmt"
	"math"
)

// Velocity declares that a field is the rate of change of another field.
type Velocity struct {
	// Of names the field that is the rate of change of Field. Of contains numbers. Field contains
	// numbers or angles, as many as Of, or it is a quaternion. For a quaternion, Of is the angular
	// velocity: three numbers, about the world axes.
	Field, Of string
	// PerTick is the change of Field in one tick if Of is one step, in fixed point: see
	// [StepsPerTick] and [RadiansPerTick]. Both ends must use the same integer. One end computes it
	// and sends it to the other.
	PerTick int64
}

const (
	// StepsPerTickBits is the number of fractional bits of [Velocity.PerTick] in steps.
	StepsPerTickBits = 19
	// RadiansPerTickBits is the number of fractional bits of [Velocity.PerTick] in radians.
	RadiansPerTickBits = 36
	// MaxPerTick is the maximum magnitude of [Velocity.PerTick].
	MaxPerTick = 1<<40 - 1
)

// StepsPerTick returns a change in steps as [Velocity.PerTick], rounded. It is 0, which predicts
// nothing, if the magnitude exceeds [MaxPerTick].
func StepsPerTick(steps float64) int64 { return toFixed(steps, StepsPerTickBits) }

// RadiansPerTick returns a rotation in radians as [Velocity.PerTick] of a quaternion, rounded. It
// is 0, which predicts nothing, if the magnitude exceeds [MaxPerTick].
func RadiansPerTick(radians float64) int64 { return toFixed(radians, RadiansPerTickBits) }

func toFixed(x float64, bits int) int64 {
	if x = math.Round(math.Ldexp(x, bits)); math.Abs(x) <= MaxPerTick {
		return int64(x)
	}
	return 0
}

// Velocities returns the velocities that the fields declare, for a simulation of s.RateHz() ticks
// per second. The caller must not modify the slice.
func (s *Schema) Velocities() []Velocity { return s.velocities }

// PerTick returns [Velocity.PerTick] of each of s.Velocities.
func (s *Schema) PerTick() (factors []int64) {
	for _, v := range s.velocities {
		factors = append(factors, v.PerTick)
	}
	return factors
}

// WithPerTick returns a schema with the same fields, the rate hz, and the given [Velocity.PerTick]
// of each of s.Velocities, which the other end computed.
func (s *Schema) WithPerTick(hz float64, factors []int64) (*Schema, error) {
	if len(factors) != len(s.velocities) {
		return nil, fmt.Errorf("schema: %s: %d factors of velocities, want %d", s.rpc, len(factors), len(s.velocities))
	}
	out, err := New(s.rpc, hz, s.fields)
	if err != nil {
		return nil, err
	}
	for i, f := range factors {
		if f < -MaxPerTick || f > MaxPerTick {
			return nil, fmt.Errorf("schema: %s: velocity of field %q: factor %d, want at most %d", s.rpc, out.velocities[i].Field, f, int64(MaxPerTick))
		}
		out.velocities[i].PerTick = f
	}
	return out, nil
}

// addVelocities computes the velocities of all fields, which are valid.
func (s *Schema) addVelocities() {
	for i := range s.fields {
		f := &s.fields[i]
		if f.Velocity == "" {
			continue
		}
		v := Velocity{Field: f.Name, Of: f.Velocity}
		perTick := s.field(f.Velocity).Resolution * f.VelocityScale / s.rate
		if f.Kind == KindQuat {
			v.PerTick = RadiansPerTick(perTick)
		} else {
			v.PerTick = StepsPerTick(perTick / f.Resolution)
		}
		s.velocities = append(s.velocities, v)
	}
}
