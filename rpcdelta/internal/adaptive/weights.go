package adaptive

// An expert predicts by a weighted sum of the features from, from+1, ... to
// from+n-1, with weights at, at+1, ... A component uses the one that would have
// done best lately.
type expert struct{ from, n, at uint8 }

const (
	classes    = 3
	maxExperts = 4
	maxUsed    = 5 // weights of an expert
	features   = 9
)

// experts by family; expertCount and weightCount say how many there are.
var (
	experts = [families][maxExperts]expert{
		plain:        {{}, {0, 1, 0}, {0, 5, 1}},
		angled:       {{}, {0, 1, 0}, {0, 5, 1}, {5, 4, 6}},
		derived:      {{0, 1, 0}, {0, 3, 1}},
		turned:       {{0, 1, 0}},
		extrapolated: {{}, {0, 1, 0}, {1, 1, 1}, {0, 4, 2}},
	}
	expertCount = [families]uint8{3, 4, 2, 1, 4}
	weightCount = [families]uint8{6, 10, 4, 1, 6}
)

// firstWeights are those of the prior, Q12, by class.
var firstWeights = [families][classes][10]int16{
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
		{2600, 2600, 450, 450, 900, 700},
		{1900, 2300, 400, 400, 1000, 600},
		{1500, 2300, 200, 400, 900, 600},
	},
}

// Prior of the flags, log odds in Q11.
var (
	priorBias  = [classes]int16{-3000, -2048, -2048}
	priorGroup = flagWeights{2000, 500, 1000, 300, 300}
	priorComp  = compFlag{-1000, flagWeights{1500, 500, 1000, 500, 300}}
)
