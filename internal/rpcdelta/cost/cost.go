// Package cost describes the cost of the parts of a payload.
package cost

import "math"

// Meter receives the cost of the parts of a payload, in fractions of bits. A field is identified by
// its index in the list that the model was compiled from, a component by its index in the field.
// The index of a quaternion does not count as a component.
type Meter interface {
	// Count receives the cost of coding the number of frames.
	Count(bits float64)
	// Frame starts frame i of the payload; the oldest is 0.
	Frame(i int)
	// Flags receives a cost of a field that no component causes: flags, a common length, the index
	// of a quaternion.
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
	ByHold    Predictor = iota // the reference, unchanged
	BySlope                    // one slope
	BySlopes                   // five slopes
	ByScalars                  // scalars of the same frame
	ByMean                     // mean of the derivative
	ByBend                     // mean and change of the derivative
	ByTurn                     // rotation by the angular velocity
	ByTurnOn                   // rotation since the frame before the reference, extrapolated
	ByTurnFar                  // rotation since the frame dist before the reference, extrapolated
	ByValue                    // entry of the list of frequent values
	ByNone                     // keyframe, no prediction
	ByRest                     // nothing was coded: a flag marks the value as equal to its reference
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
