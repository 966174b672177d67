// Package cost describes the cost of the parts of a payload.
package cost

import "math"

// Meter receives the cost of the parts of a payload, in fractions of bits. Fields are identified by
// their index in the list that the model was compiled from. Components are counted within the
// field, without the index of a quaternion.
type Meter interface {
	// Count receives the cost of the number of frames.
	Count(bits float64)
	// Frame starts frame i of the payload; the oldest is 0.
	Frame(i int)
	// Flags receives a cost of a field that belongs to no component: flags, a common length, the
	// index of a quaternion.
	Flags(field int, bits float64)
	// Contents receives the cost of a byte string.
	Contents(field int, bits float64)
	// Component receives the cost of component k, its predictor and its residual, which is
	// [NoResidual] if no residual was coded.
	Component(field, k int, bits float64, by Predictor, residual int64)
}

// NoResidual stands for the residual of a component that has none.
const NoResidual = math.MinInt64

// Predictor is the method that predicted a component.
type Predictor uint8

// The predictors. All but the last three are experts.
const (
	ByHold    Predictor = iota // the reference
	BySlope                    // one slope
	BySlopes                   // five slopes
	ByScalars                  // scalars of the same frame
	ByMean                     // the mean of the derivative
	ByBend                     // the derivative's mean and change
	ByTurn                     // the angular velocity
	ByTurnOn                   // the rotation since the frame before the reference
	ByTurnFar                  // the rotation since the frame dist before the reference
	ByValue                    // a frequent value
	ByNone                     // a keyframe
	ByRest                     // nothing was coded: a flag marks it as equal to its reference
)

// Predictors is the number of predictors, without ByRest.
const Predictors = int(ByNone) + 1

// Names are the names of the predictors, as in docs/design/codec.md.
var Names = [Predictors]string{
	ByHold:    "hold",
	BySlope:   "slope",
	BySlopes:  "slopes",
	ByScalars: "scalars",
	ByMean:    "mean",
	ByBend:    "bend",
	ByTurn:    "turn",
	ByTurnOn:  "turn on",
	ByTurnFar: "turn far",
	ByValue:   "frequent value",
	ByNone:    "none",
}
