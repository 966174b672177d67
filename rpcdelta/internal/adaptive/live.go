package adaptive

import "math"

// live is what learns, one for each stream, and what coding reads.
type live struct {
	comps    []liveComp
	drives   []drive
	lists    []valueList
	groups   []liveGroup
	counters counters
	taken    uint64
}

// counters are adaptive chances that coding reads as they are.
type counters struct {
	index [][sureLevels]uint16 // of a quat: that the predicted index is right
	bits  [][4]uint16          // of a bit: that it stays, by its value and last change
	blobs []blobModel
}

type liveComp struct {
	in   [classes]liveClass
	lean leaning
	flag compFlag
}

// liveClass is what a component learns in a class of distances.
type liveClass struct {
	w weights
	choice
	shapes [shapes]int16     // bits under each table, Q10
	costs  [maxExperts]int16 // log2 of each expert's error, Q10
	scale
}

// choice is how a component is coded in a class: by the expert and the table of
// the lowest cost.
type choice struct{ expert, shape uint8 }

type liveGroup struct {
	groupFlag
	seen  uint16
	steps int16 // how often a counter stepped, Q12
}

func (m *Model) newLive() live {
	return live{
		comps:    make([]liveComp, len(m.comps)),
		drives:   make([]drive, m.drives),
		lists:    make([]valueList, m.lists),
		groups:   make([]liveGroup, len(m.groups)),
		counters: m.newCounters(),
	}
}

func (m *Model) newCounters() counters {
	return counters{
		index: make([][sureLevels]uint16, m.quats),
		bits:  make([][4]uint16, m.bits),
		blobs: make([]blobModel, m.blobs),
	}
}

func (c *counters) copy(o *counters) {
	copy(c.index, o.index)
	copy(c.bits, o.bits)
	copy(c.blobs, o.blobs)
}

func (l *live) copy(o *live) {
	copy(l.drives, o.drives)
	copy(l.comps, o.comps)
	copy(l.lists, o.lists)
	copy(l.groups, o.groups)
	l.counters.copy(&o.counters)
	l.taken = o.taken
}

// reset makes l the generic prior.
func (l *live) reset(m *Model) {
	for i := range l.counters.bits {
		l.counters.bits[i] = [4]uint16{64600, 62000, 64600, 62000}
	}
	for i := range l.counters.blobs {
		l.counters.blobs[i].reset()
	}
	for i := range l.lists {
		l.lists[i].reset()
	}
	for i := range l.counters.index {
		for j := range l.counters.index[i] {
			l.counters.index[i][j] = uint16(65536 - 65536/(20+8*(9-j)*(9-j)))
		}
		l.counters.index[i][sureLevels-1] = 40000
	}
	for i := range m.groups {
		g := &m.groups[i]
		l.groups[i] = liveGroup{groupFlag: groupFlag{bias: priorBias, w: priorGroup}}
		if g.form == formBits {
			continue
		}
		for k := range g.comps {
			l.resetComp(m, g, g.first+k)
		}
	}
}

func (l *live) resetComp(m *Model, g *group, i int) {
	lc := &l.comps[i]
	*lc = liveComp{lean: priorLean, flag: priorComp}
	if d := m.comps[i].drive; d >= 0 {
		l.drives[d] = drive{}
	}
	for cl := range lc.in {
		c := &lc.in[cl]
		c.w = firstWeights[g.family][cl]
		c.scale = scale{fast: 8 << 8, slow: 8 << 8, last: 8 << 8}
		c.settle()
		c.shapes = [shapes]int16{5 << 10, 5<<10 - 300, 5<<10 - 100}
		for e := range expertCount[g.family] {
			c.costs[e] = 4<<10 + int16(e)*200
		}
		for e := expertCount[g.family]; e < maxExperts; e++ {
			c.costs[e] = math.MaxInt16 // never chosen
		}
		c.choose()
	}
}

// ahead is by how much the third expert has to be better: a tenth of a bit, Q10.
const ahead = 100

// choose settles the choice. Of equals it takes the first expert and
// the middle table: each is compared along with its rank.
func (c *liveClass) choose() {
	cost := &c.costs
	e := min(int32(cost[0])<<2, int32(cost[1])<<2|1, (int32(cost[2])+ahead)<<2|2, int32(cost[3])<<2|3)
	bits := &c.shapes
	s := min(int32(bits[0])<<2|2, int32(bits[1])<<2|1, int32(bits[2])<<2|3)
	c.choice = choice{uint8(e & 3), shapeOf[s&3]}
}

// shapeOf is the table of a rank.
var shapeOf = [4]uint8{1: 1, 2: 0, 3: 2}
