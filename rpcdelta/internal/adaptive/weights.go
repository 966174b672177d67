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
		turned:       {1},
		extrapolated: {0, 1, 2},
	}
)

// weights are those of a component's experts in a class, Q12.
type weights [6]int16

// drive are those of the scalars beside an angle, by class.
type drive [classes][4]int16

// firstWeights are those of the prior, Q12, by class.
var firstWeights = [families][classes]weights{
	plain: {
		{3900, 800, -1800, 1000, 2400, 1500},
		{3400, 800, -1800, 1000, 2400, 1500},
		{2900, 800, -1800, 1000, 2400, 1500},
	},
	angled: {
		{3900, 800, -1800, 1000, 2400, 1500},
		{3400, 800, -1800, 1000, 2400, 1500},
		{2900, 800, -1800, 1000, 2400, 1500},
	},
	derived: {
		{4096, 4096, -500, 2400},
		{4096, 4096, -1400, 700},
		{4096, 4096, -1600, 350},
	},
	turned: {{4096}, {4096}, {4096}},
	extrapolated: {
		{2600, 2600},
		{1900, 2300},
		{1500, 2300},
	},
}

// priorLean is the prior of what scales lean on, Q12.
var priorLean = leaning{near: 1000, run: 1500}

// Prior of the flags, log odds in Q11.
var (
	priorBias  = [classes]int16{-3000, -2048, -2048}
	priorGroup = flagWeights{2000, 1000, 300, 300}
	priorComp  = compFlag{-1000, flagWeights{1500, 1000, 500, 0}}
)
