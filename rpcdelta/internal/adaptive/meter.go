package adaptive

import "math"

// Meter takes what the parts of a payload cost, in fractions of bits. Fields are named
// by their indexes as the model was made of them, components by their place among those
// that the codec predicts or, of a bit set, codes: a quat's index is none.
type Meter interface {
	// Count takes what the number of rows cost.
	Count(bits float64)
	// Row says that what follows is of row i of the payload, the oldest being 0.
	Row(i int)
	// Flags takes what a field cost that is no component's: whether it or its components
	// changed, a common length, a quat's index.
	Flags(field int, bits float64)
	// Contents takes what a byte string cost.
	Contents(field int, bits float64)
	// Component takes what a component cost, what forecast it, and how far off that was:
	// [NoResidual] where no residual was coded.
	Component(field, k int, bits float64, by Predictor, residual int64)
}

// NoResidual stands for the residual of a component that had none.
const NoResidual = math.MinInt64

// Predictor is what a component was coded from.
type Predictor uint8

// The predictors. All but the last three are experts.
const (
	ByHold Predictor = iota
	BySlope
	BySlopes
	ByScalars
	ByMean
	ByBend
	ByTurn
	ByTurnOn
	ByTurnFar
	ByValue // one of the frequent values
	ByNone  // a frame without baseline
	ByRest  // nothing was coded: it rests where its reference is
)

// predictors are the experts of each family.
var predictors = [families][maxExperts]Predictor{
	familyPlain:        {ByHold, BySlope, BySlopes},
	familyAngled:       {ByHold, BySlope, BySlopes, ByScalars},
	familyDerived:      {ByMean, ByBend},
	familyTurned:       {ByTurn, ByTurn, ByTurn, ByTurn},
	familyExtrapolated: {ByHold, ByTurnOn, ByTurnFar},
}

// predictor is the expert that forecasts a component; of two the one that weighs more.
func (p *refFrames) predictor(g *group, lc *componentState) Predictor {
	class := p.lo
	if p.share >= 1<<7 {
		class = p.hi
	}
	return predictors[g.family][lc.classes[class].expert&3]
}
