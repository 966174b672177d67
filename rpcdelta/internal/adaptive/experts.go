package adaptive

import "github.com/uplink-rpc/uplink/rpcdelta/internal/cost"

// An expert predicts a component by a weighted sum of features. A component uses the expert that
// had the smallest errors recently. Distances to the reference fall into classes with separate
// weights.
const (
	classes    = 3
	maxExperts = 4
	features   = 9
)

var (
	// expertCount and weightCount are by family. weightCount excludes the weights of scalars.
	expertCount = [families]uint8{3, 4, 2, 1, 3}
	weightCount = [families]uint8{6, 6, 4, 1, 2}

	// wanted is the bit mask of the features that a quaternion's expert reads.
	wanted = [families][maxExperts]uint{
		familyTurned:       {1},
		familyExtrapolated: {0, 1, 2},
	}
)

// weights are the weights of a component's experts in one class, Q12.
type weights [6]int16

// inputWeights are the weights of the scalars that predict an angle, Q12.
type inputWeights [classes][4]int16

// initialWeights are the initial weights by family and class.
var initialWeights = [families][classes]weights{
	familyPlain: {
		{3900, 800, -1800, 1000, 2400, 1500},
		{3400, 800, -1800, 1000, 2400, 1500},
		{2900, 800, -1800, 1000, 2400, 1500},
	},
	familyAngled: {
		{3900, 800, -1800, 1000, 2400, 1500},
		{3400, 800, -1800, 1000, 2400, 1500},
		{2900, 800, -1800, 1000, 2400, 1500},
	},
	familyDerived: {
		{4096, 4096, -500, 2400},
		{4096, 4096, -1400, 700},
		{4096, 4096, -1600, 350},
	},
	familyTurned: {{4096}, {4096}, {4096}},
	familyExtrapolated: {
		{2600, 2600},
		{1900, 2300},
		{1500, 2300},
	},
}

// Initial weights of the residual contexts, Q12, and of the flags, log odds in Q11.
var (
	initialContext      = contextWeights{near: 1000, run: 1500}
	initialBias         = [classes]int16{-3000, -2048, -2048}
	initialGroupWeights = flagWeights{2000, 1000, 300, 300}
	initialCompFlag     = compFlag{-1000, flagWeights{1500, 1000, 500, 0}}
)

// predictors are the experts of each family.
var predictors = [families][maxExperts]cost.Predictor{
	familyPlain:        {cost.ByHold, cost.BySlope, cost.BySlopes},
	familyAngled:       {cost.ByHold, cost.BySlope, cost.BySlopes, cost.ByScalars},
	familyDerived:      {cost.ByMean, cost.ByBend},
	familyTurned:       {cost.ByTurn, cost.ByTurn, cost.ByTurn, cost.ByTurn},
	familyExtrapolated: {cost.ByHold, cost.ByTurnOn, cost.ByTurnFar},
}

// predictor returns the expert that predicts a component: if two are interpolated, the one with the
// larger share.
func (p *refFrames) predictor(g *group, lc *componentState) cost.Predictor {
	class := p.lo
	if p.share >= 1<<7 {
		class = p.hi
	}
	return predictors[g.family][lc.classes[class].expert&3]
}
