package schema

import "math"

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
