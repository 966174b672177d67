package adaptive

import (
	"math"

	"github.com/uplink-rpc/uplink/internal/codec/fnv"
)

// modelState is the learned state of a stream that coding reads.
type modelState struct {
	components []componentState
	inputs     []inputWeights
	lists      []valueList
	groups     []groupState
	bitModels  bitModels
	counts     countModel
	accepted   uint64 // number of accepted frames
}

// bitModels are probabilities that coding uses directly, in units of 1/65536.
type bitModels struct {
	index [][ambiguityLevels]uint16 // by quaternion: probability that the predicted index is right
	bits  [][4]uint16               // by bit, its value and its last change: probability that it does not change
	bytes []bytesModel
}

type componentState struct {
	classes [classes]classState
	context contextWeights
	flag    compFlag
}

// classState is the state of a component in one class of distances.
type classState struct {
	w weights
	choice
	shapeCosts  [shapes]int16     // mean bits per residual under each set of tables, Q10
	expertCosts [maxExperts]int16 // mean log2 of each expert's error, Q10
	errorScale
}

// choice is the expert and the set of tables in use: the ones with the lowest cost.
type choice struct{ expert, shape uint8 }

type groupState struct {
	groupFlag
	uses     uint16 // number of uses of the flag, while it learns fast
	stepRate int16  // frequency with which the counter continued at its last rate, Q12
}

func (c *bitModels) copy(o *bitModels) {
	copy(c.index, o.index)
	copy(c.bits, o.bits)
	copy(c.bytes, o.bytes)
}

func (l *modelState) copy(o *modelState) {
	copy(l.inputs, o.inputs)
	copy(l.components, o.components)
	copy(l.lists, o.lists)
	copy(l.groups, o.groups)
	l.bitModels.copy(&o.bitModels)
	l.counts = o.counts
	l.accepted = o.accepted
}

// reset sets l to the state without a prior.
func (l *modelState) reset(m *Model) {
	l.counts.reset()
	for i := range l.bitModels.bits {
		l.bitModels.bits[i] = [4]uint16{64600, 62000, 64600, 62000}
	}
	for i := range l.bitModels.bytes {
		l.bitModels.bytes[i].reset()
	}
	for i := range l.lists {
		l.lists[i].reset()
	}
	for i := range l.bitModels.index {
		for j := range l.bitModels.index[i] {
			l.bitModels.index[i][j] = uint16(65536 - 65536/(20+8*(9-j)*(9-j)))
		}
		l.bitModels.index[i][ambiguityLevels-1] = 40000
	}
	for i := range m.groups {
		g := &m.groups[i]
		l.groups[i] = groupState{groupFlag: groupFlag{bias: initialBias, w: initialGroupWeights}}
		if g.form == formBits {
			continue
		}
		for k := range g.numComps {
			l.resetComp(m, g, g.firstComp+k)
		}
	}
}

func (l *modelState) resetComp(m *Model, g *group, i int) {
	lc := &l.components[i]
	*lc = componentState{context: initialContext, flag: initialCompFlag}
	if d := m.components[i].inputs; d >= 0 {
		l.inputs[d] = inputWeights{}
	}
	for cl := range lc.classes {
		c := &lc.classes[cl]
		c.w = initialWeights[g.family][cl]
		c.errorScale = errorScale{fast: 8 << 8, slow: 8 << 8, last: 8 << 8}
		c.update()
		c.shapeCosts = [shapes]int16{5 << 10, 5<<10 - 300, 5<<10 - 100}
		for e := range expertCount[g.family] {
			c.expertCosts[e] = 4<<10 + int16(e)*200
		}
		for e := expertCount[g.family]; e < maxExperts; e++ {
			c.expertCosts[e] = math.MaxInt16 // never chosen
		}
		c.chooseLowest()
	}
}

// thirdExpertMargin is the cost added to the third expert: a tenth of a bit, Q10.
const thirdExpertMargin = 100

// chooseLowest updates the choice. Costs are compared together with a rank in their low bits, so
// that the first expert and the middle set win ties.
func (c *classState) chooseLowest() {
	cost := &c.expertCosts
	e := min(int32(cost[0])<<2, int32(cost[1])<<2|1, (int32(cost[2])+thirdExpertMargin)<<2|2, int32(cost[3])<<2|3)
	bits := &c.shapeCosts
	s := min(int32(bits[0])<<2|2, int32(bits[1])<<2|1, int32(bits[2])<<2|3)
	c.choice = choice{uint8(e & 3), shapeByRank[s&3]}
}

// shapeByRank is the set of tables of each rank.
var shapeByRank = [4]uint8{1: 1, 2: 0, 3: 2}

// hash adds l to h.
func (l *modelState) hash(h fnv.Hash) fnv.Hash {
	h = h.Add(l.accepted)
	for i := range l.components {
		h = l.components[i].hash(h)
	}
	for i := range l.inputs {
		for class := range classes {
			h = fold16(h, l.inputs[i][class][:])
		}
	}
	for i := range l.lists {
		h = l.lists[i].hash(h)
	}
	for i := range l.groups {
		g := &l.groups[i]
		h = fold16(h, g.bias[:])
		h = fold16(h, g.w[:])
		h = h.Add(uint64(g.uses)<<16 | uint64(uint16(g.stepRate)))
	}
	return l.counts.hash(l.bitModels.hash(h))
}

// hash omits values that follow from others.
func (c *componentState) hash(h fnv.Hash) fnv.Hash {
	for class := range c.classes {
		s := &c.classes[class]
		h = h.Add(uint64(uint32(s.fast))<<32 | uint64(uint32(s.slow)))
		h = h.Add(uint64(uint32(s.last))<<32 | uint64(uint16(s.shapeCosts[0])))
		h = h.Add(uint64(uint16(s.shapeCosts[1]))<<16 | uint64(uint16(s.shapeCosts[2])))
		h = fold16(h, s.expertCosts[:])
		h = fold16(h, s.w[:])
	}
	h = h.Add(uint64(uint16(c.context.near))<<32 | uint64(uint16(c.context.run))<<16 | uint64(uint16(c.context.offset)))
	h = h.Add(uint64(uint16(c.flag.bias))<<16 | uint64(uint16(c.flag.w[0])))
	return fold16(h, c.flag.w[1:])
}

func (c *bitModels) hash(h fnv.Hash) fnv.Hash {
	for i := range c.index {
		h = fold16(h, c.index[i][:])
	}
	for i := range c.bits {
		h = fold16(h, c.bits[i][:])
	}
	for i := range c.bytes {
		h = fold16(h, c.bytes[i].unchanged[:])
		h = fold16(h, c.bytes[i].bitUnchanged[:])
	}
	return h
}

// fold16 adds four values at a time, the first in the low bits.
func fold16[T int16 | uint16](h fnv.Hash, s []T) fnv.Hash {
	for ; len(s) >= 4; s = s[4:] {
		h = h.Add(uint64(uint16(s[0])) | uint64(uint16(s[1]))<<16 | uint64(uint16(s[2]))<<32 | uint64(uint16(s[3]))<<48)
	}
	for _, v := range s {
		h = h.Add(uint64(uint16(v)))
	}
	return h
}

// An expert predicts a component by a weighted sum of features. A component uses the expert that
// had the smallest errors recently. Distances to the reference fall into classes with separate
// weights.
const (
	classes    = 3
	maxExperts = 4
	features   = 9
)

var (
	// Both are indexed by family. weightCount excludes the weights of scalars.
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

// wantedFeatures returns the features that the experts of a quaternion's components read, as a bit
// mask.
func (l *modelState) wantedFeatures(g *group, p *refFrames) uint {
	want := uint(1)
	for k := range g.numComps {
		c := &l.components[g.firstComp+k]
		want |= wanted[g.family][c.classes[p.lo].expert&3] | wanted[g.family][c.classes[p.hi].expert&3]
	}
	return want
}

// flagShift counts a use of the group's flag and returns the learning rate, see [flagStep].
func (g *groupState) flagShift() int {
	if g.uses > 16 {
		return 3
	}
	g.uses++
	return 2
}

// steps reports whether a counter usually continues at its last rate.
func (g *groupState) steps() bool { return g.stepRate > 2048 }

// expect returns the expected distribution of a component's residual. off is the component's
// predicted offset from the reference.
func (c *componentState) expect(p *refFrames, s *residualContext, off int64) expectation {
	from, to := c.classes[p.from&1].expected, c.classes[p.from&1+1].expected
	magnitude := from + max(to-from, -200)*int32(p.share)>>8
	near, run, offset := s.inputs(magnitude, off)
	return expectation{c.context.adjust(magnitude, near, run, offset), c.classes[p.class].shape}
}
