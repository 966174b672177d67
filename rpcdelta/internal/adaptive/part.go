package adaptive

import "math"

// Part is a set of parts of the codec that a model can do without, to see what they
// are worth.
type Part uint32

// The parts.
const (
	FrequentValues Part = 1 << iota
	Stepping            // of counters
	Slope               // the expert of one slope
	Slopes              // that of five
	Driven              // by scalars
	Derived             // numbers, by the field that is their derivative
	Bend                // how a derivative changes, beside its mean
	Turned              // orientations, by an angular velocity
	Extended            // orientations, by how they turned
	Weights             // that adapt
	PastFlags           // a flag's inputs from the past
	LastFlag            // the flag before it
	Pressed             // whether a bit changed
	Near                // the scale leans on the residual before
	Run                 // on all before
	Way                 // on the way of the prediction
	Scales              // between those of two classes
	Between             // predictions between those of two classes
	Tables              // three sets
)

// CompileWithout is [Prior.Compile] of a codec that lacks some parts.
func (p *Prior) CompileWithout(off Part, fields []Field, rateHz float64) *Model {
	m := &Model{tables: p.tables, off: off}
	if !(rateHz > 0) {
		rateHz = 60
	}
	b := builder{m: m, fields: fields, rate: rateHz}
	b.build()
	m.first = m.newLive()
	m.first.reset(m)
	p.start(m)
	if off != 0 {
		m.drop(&m.first)
	}
	return m
}

// drop takes out of a state what the missing parts learned.
func (m *Model) drop(l *live) {
	for i := range l.groups {
		m.off.flag(&l.groups[i].w)
	}
	for i := range m.groups {
		g := &m.groups[i]
		if g.form != formNumbers && g.form != formQuat {
			continue
		}
		for k := g.first; k < g.first+g.comps; k++ {
			m.dropComp(g, &l.comps[k], &m.first.comps[k])
		}
	}
	if m.off&Weights != 0 {
		copy(l.drives, m.first.drives)
	}
}

func (m *Model) dropComp(g *group, c, first *liveComp) {
	m.off.flag(&c.flag.w)
	if m.off&Weights != 0 {
		for cl := range c.in {
			c.in[cl].w = first.in[cl].w
		}
	}
	if m.off&Near != 0 {
		c.lean.near = 0
	}
	if m.off&Run != 0 {
		c.lean.run = 0
	}
	if m.off&Way != 0 {
		c.lean.way = 0
	}
	for cl := range c.in {
		in := &c.in[cl]
		if m.off&Tables != 0 {
			in.shapes = [shapes]int16{}
		}
		for e := range expertCount[g.family] {
			if m.off&partOf[g.family][e] != 0 {
				in.costs[e] = math.MaxInt16
			}
		}
		in.choose()
	}
}

// partOf is the part that an expert is.
var partOf = [families][maxExperts]Part{
	plain:        {1: Slope, 2: Slopes},
	angled:       {1: Slope, 2: Slopes},
	derived:      {1: Bend},
	extrapolated: {1: Extended, 2: Extended},
}

// flag drops inputs of a flag.
func (off Part) flag(w *flagWeights) {
	if off&PastFlags != 0 {
		w[0], w[1] = 0, 0
	}
	if off&LastFlag != 0 {
		w[2] = 0
	}
	if off&Pressed != 0 {
		w[3] = 0
	}
}

// narrow drops what lies between classes.
func (off Part) narrow(p *past) {
	if off&Between != 0 {
		p.lo, p.hi = uint8(p.class), uint8(p.class)
	}
	if off&Scales != 0 {
		p.grown = 0
		if p.class > int(p.from) {
			p.grown = 1 << 8
		}
	}
}
