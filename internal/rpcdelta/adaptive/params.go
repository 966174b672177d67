package adaptive

// paramKind is a kind of learned parameter. A prior has initial values of each kind for unknown
// fields.
type paramKind uint8

const (
	// Weights of a field's flag, by kind of field.
	paramNumberFlag paramKind = iota
	paramIntegerFlag
	paramAngledFlag
	paramDerivedFlag
	paramTurnedFlag
	paramExtrapolatedFlag
	paramBitsFlag
	paramBytesFlag

	paramListProbs         // probabilities of frequent values
	paramTurnedIndex       // probabilities of the index of a quaternion with an angular velocity
	paramExtrapolatedIndex // probabilities of the index of a quaternion without an angular velocity
	paramBit               // probabilities of a bit of a bit set
	paramBytes             // probabilities of a byte string

	// Parameters that a prior has for known fields only.
	paramUses   // uses of a field's flag, and the rate of steps of a counter
	paramValues // frequent values
	paramScale  // error scale and context weights of a component

	// Parameters of components, one kind per family. They are weights of the experts, costs of the
	// experts and of the sets of tables, and weights of the flag.
	paramWeights
	paramCosts    = paramWeights + paramKind(families)
	paramCompFlag = paramCosts + paramKind(families)
	paramKinds    = paramCompFlag + paramKind(families)
)

// trained reports whether a prior has initial values of this kind for unknown fields. It contains
// no weights and scales, because those of other games are worse than the built-in ones.
func (p paramKind) trained() bool {
	return p < paramUses || p >= paramCosts
}

// paramRef identifies the parameters of one kind in a model's state.
type paramRef struct {
	kind  paramKind
	index int // index of the group, component, list, quaternion, bit or byte string
	comp  int // paramValues: index of the component
}

// paramVisitor reads parameters from a state, or loads them into it, in a fixed order. Loaded
// numbers are clamped, so that any numbers result in a valid state.
type paramVisitor struct {
	values []int32
	load   bool // write values into the state; their count must equal the count when reading
}

// number reads x, or loads it, clamped to lo and hi.
func (s *paramVisitor) number(x, lo, hi int32) int32 {
	if !s.load {
		s.values = append(s.values, x)
		return x
	}
	x = s.values[0]
	s.values = s.values[1:]
	return max(lo, min(hi, x))
}

func integer[T int16 | uint16 | uint8](s *paramVisitor, p *T, lo, hi int32) {
	*p = T(s.number(int32(*p), lo, hi))
}

// probability visits a probability that adapts by up to 1/32. Its bounds are those that adaptation
// cannot exceed.
func (s *paramVisitor) probability(p *uint16) { integer(s, p, 31, 65500) }

// param visits the parameters x.
func (s *paramVisitor) param(l *modelState, m *Model, x paramRef) {
	switch x.kind {
	case paramListProbs:
		s.valueList(&l.lists[x.index])
	case paramValues:
		s.frequentValues(&l.lists[x.index], &m.components[x.comp])
	case paramTurnedIndex, paramExtrapolatedIndex:
		for i := range l.bitModels.index[x.index] {
			s.probability(&l.bitModels.index[x.index][i])
		}
	case paramBit:
		for i := range l.bitModels.bits[x.index] {
			s.probability(&l.bitModels.bits[x.index][i])
		}
	case paramBytes:
		b := &l.bitModels.bytes[x.index]
		for i := range b.unchanged {
			s.probability(&b.unchanged[i])
		}
		for i := range b.bitUnchanged {
			s.probability(&b.bitUnchanged[i])
		}
	case paramScale:
		for cl := range classes {
			s.errorScale(&l.components[x.index].classes[cl].errorScale)
		}
		w := &l.components[x.index].context
		integer(s, &w.near, minContextWeight, maxContextWeight)
		integer(s, &w.run, minContextWeight, maxContextWeight)
		integer(s, &w.offset, minContextWeight, maxContextWeight)
	case paramUses:
		most := int32(0)
		if m.groups[x.index].counter {
			most = 4096
		}
		integer(s, &l.groups[x.index].uses, 0, 17)
		integer(s, &l.groups[x.index].stepRate, 0, most)
	default:
		if x.kind >= paramWeights {
			s.component(l, m, x)
			return
		}
		g := &l.groups[x.index]
		for i := range g.bias {
			s.flagWeight(&g.bias[i])
		}
		for i := range g.w {
			s.flagWeight(&g.w[i])
		}
	}
}

func (s *paramVisitor) flagWeight(w *int16) { integer(s, w, -20000, 20000) }

// component visits parameters of a component that depend on its family.
func (s *paramVisitor) component(l *modelState, m *Model, x paramRef) {
	c := &l.components[x.index]
	if x.kind >= paramCompFlag {
		s.flagWeight(&c.flag.bias)
		for k := range c.flag.w {
			s.flagWeight(&c.flag.w[k])
		}
		return
	}
	f := (x.kind - paramWeights) % paramKind(families)
	for cl := range c.classes {
		in := &c.classes[cl]
		if x.kind < paramCosts {
			for k := range weightCount[f] {
				integer(s, &in.w[k], -32000, 32000)
			}
			if d := m.components[x.index].inputs; d >= 0 {
				for k := range l.inputs[d][cl] {
					integer(s, &l.inputs[d][cl][k], -32000, 32000)
				}
			}
			continue
		}
		for e := range expertCount[f] {
			integer(s, &in.expertCosts[e], 0, 31<<10)
		}
		for k := range in.shapeCosts {
			integer(s, &in.shapeCosts[k], 0, 31<<10)
		}
		in.chooseLowest()
	}
}

// errorScale visits the logarithms of the averages, so that training can average them. Loading sets
// the last magnitude to the slow average.
func (s *paramVisitor) errorScale(c *errorScale) {
	c.fast = fromLog(s.number(log2(int64(c.fast)), 0, 30<<10))
	c.slow = fromLog(s.number(log2(int64(c.slow)), 0, 30<<10))
	if s.load {
		c.last = c.slow
		c.update()
	}
}

// fromLog is the inverse of log2, rounded down.
func fromLog(x int32) int32 {
	e := uint(x) >> 10
	return int32((1024+int64(x)&1023)<<e>>10 - 1)
}

// valueList visits the probabilities of frequent values.
func (s *paramVisitor) valueList(l *valueList) {
	s.probability(&l.anyProb)
	for i := range l.rankProb {
		s.probability(&l.rankProb[i])
	}
	integer(s, &l.gain, -16<<10, 16<<10)
}

// frequentValues visits the values and their counts. Values out of range of the component are not
// loaded.
func (s *paramVisitor) frequentValues(l *valueList, c *component) {
	if !s.load {
		for i, v := range l.values {
			n := int32(0)
			if i < int(l.n) {
				n = int32(l.count[i])
			}
			s.values = append(s.values, v, n)
		}
		return
	}
	l.n = 0
	for range l.values {
		v, n := s.values[0], min(s.values[1], 200)
		s.values = s.values[2:]
		if n > 0 && c.fit(int64(v)) == v && l.rank(v) < 0 {
			l.values[l.n], l.count[l.n] = v, uint8(n)
			l.n++
		}
	}
	l.enabled = l.n > 0 && l.gain > 0
}
