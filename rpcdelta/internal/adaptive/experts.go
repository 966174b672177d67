package adaptive

// An expert predicts by a weighted sum of features, see [featureSet.predict] and
// [featureSet.turns]. A component uses the one that would have done best lately.
const (
	classes    = 3
	maxExperts = 4
	features   = 9
)

var (
	// expertCount and weightCount are those of each family's components, those of scalars apart.
	expertCount = [families]uint8{3, 4, 2, 1, 3}
	weightCount = [families]uint8{6, 6, 4, 1, 2}

	// wanted has a bit for each feature that an orientation's expert reads.
	wanted = [families][maxExperts]uint{
		familyTurned:       {1},
		familyExtrapolated: {0, 1, 2},
	}
)

// weights are those of a component's experts in a class, Q12.
type weights [6]int16

// drive are those of the scalars beside an angle, by class.
type inputWeights [classes][4]int16

// firstWeights are those of the prior, Q12, by class.
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

// priorLean is the prior of what scales lean on, Q12.
var initialContext = contextWeights{near: 1000, run: 1500}

// Prior of the flags, log odds in Q11.
var (
	initialBias         = [classes]int16{-3000, -2048, -2048}
	initialGroupWeights = flagWeights{2000, 1000, 300, 300}
	initialCompFlag     = compFlag{-1000, flagWeights{1500, 1000, 500, 0}}
)
