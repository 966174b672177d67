package adaptive

import "fmt"

var (
	families    = [5]string{"plain", "angled", "derived", "turned", "extrapolated"}
	expertCount = map[string]int{"plain": 3, "angled": 4, "derived": 2, "turned": 1, "extrapolated": 3}
)

type class struct {
	weight             [10]int64 // the last four are those of scalars
	cost               [4]int64
	shapeCost          [3]int64
	fast, slow, recent int64
	expected, expert   int64
	shape              int64
}

func (y *class) derive() {
	y.expected = logOf((2*y.fast + 4*y.slow + y.recent) / 28)
	cost := y.cost
	cost[2] += 100
	y.expert, y.shape = 0, 1
	for e, c := range cost {
		if c < cost[y.expert] {
			y.expert = int64(e)
		}
	}
	for _, i := range [2]int64{0, 2} {
		if y.shapeCost[i] < y.shapeCost[y.shape] {
			y.shape = i
		}
	}
}

type componentState struct {
	classes  [3]class
	lean     [3]int64
	flagBias int64
	flagW    [4]int64

	value, count, rank [6]int64
	n, any, gain       int64
	asks               bool
}

type groupState struct {
	bias        [3]int64
	w           [4]int64
	uses, steps int64
	index       [10]int64
	bit         [][][4]int64 // by component and bit
	same        [4]int64
	sameBit     [16]int64
}

type state struct {
	m              *model
	accepted       int64
	enough         [3][15]int64
	last, repeated int64
	none           [2]int64
	groups         []groupState
	components     []componentState
}

func newState(m *model) *state {
	s := &state{m: m, last: 1, none: [2]int64{60500, 5000}, groups: make([]groupState, len(m.groups)), components: make([]componentState, len(m.components))}
	for i := range s.enough {
		for j := range s.enough[i] {
			s.enough[i][j] = 32768
		}
		s.enough[i][0] = 60500
	}
	for i, g := range m.groups {
		x := &s.groups[i]
		x.bias, x.w, x.same = m.t.Flags.Bias, m.t.Flags.W, [4]int64{58000, 36000, 30000, 16000}
		copy(x.index[:], m.t.Index)
		for j := range x.sameBit {
			x.sameBit[j] = 36000
		}
		for _, w := range g.widths {
			all := make([][4]int64, w)
			for j := range all {
				all[j] = [4]int64{64600, 62000, 64600, 62000}
			}
			x.bit = append(x.bit, all)
		}
		s.applyGroup(g, x)
	}
	for i, c := range m.components {
		s.components[i] = s.start(c)
	}
	return s
}

func (s *state) start(c *component) componentState {
	y := componentState{
		lean: [3]int64{1000, 1500, 0}, flagBias: s.m.t.Flags.FlagBias, flagW: s.m.t.Flags.FlagW,
		any: 8000, rank: [6]int64{26000, 26000, 26000, 26000, 26000, 26000}, gain: -200,
	}
	for k := range y.classes {
		z := &y.classes[k]
		copy(z.weight[:], s.m.t.Weights[c.f.family][k])
		z.cost, z.shapeCost = [4]int64{32767, 32767, 32767, 32767}, [3]int64{5120, 4820, 5020}
		z.fast, z.slow, z.recent = 2048, 2048, 2048
		for e := range expertCount[c.f.family] {
			z.cost[e] = 4096 + 200*int64(e)
		}
	}
	s.applyComponent(c, &y)
	for k := range y.classes {
		y.classes[k].derive()
	}
	return y
}

// flagKind returns the kind of parameters of a group's flag.
func flagKind(g *field) int {
	switch {
	case g.bitset:
		return 6
	case g.str:
		return 7
	case g.counter:
		return 1
	}
	return map[string]int{"plain": 0, "angled": 2, "derived": 3, "turned": 4, "extrapolated": 5}[g.family]
}

// applyGroup applies the built-in prior, which has no kinds 13 to 20 and no fields.
func (s *state) applyGroup(g *field, x *groupState) {
	kinds := &s.m.t.Prior.Kinds
	if k := kinds[flagKind(g)]; len(k) == 7 {
		copy(x.bias[:], k)
		copy(x.w[:], k[3:])
	}
	index := kinds[9]
	if g.family == "extrapolated" {
		index = kinds[10]
	}
	if len(index) == 10 {
		copy(x.index[:], index)
	}
	for i := range x.bit {
		for j := range x.bit[i] {
			copy(x.bit[i][j][:], kinds[11])
		}
	}
	if k := kinds[12]; len(k) == 20 {
		copy(x.same[:], k)
		copy(x.sameBit[:], k[4:])
	}
}

func (s *state) applyComponent(c *component, y *componentState) {
	kinds := &s.m.t.Prior.Kinds
	family := 0
	for i, name := range families {
		if name == c.f.family {
			family = i
		}
	}
	if k := kinds[8]; c.f.family == "plain" && len(k) == 8 {
		y.any, y.gain = k[0], k[7]
		copy(y.rank[:], k[1:])
	}
	n := expertCount[c.f.family]
	if k := kinds[21+family]; len(k) == 3*(n+3) {
		for i := range y.classes {
			copy(y.classes[i].cost[:n], k[i*(n+3):])
			copy(y.classes[i].shapeCost[:], k[i*(n+3)+n:])
		}
	}
	if k := kinds[26+family]; len(k) == 5 {
		y.flagBias = k[0]
		copy(y.flagW[:], k[1:])
	}
}

// hash is the hash of section 13.
func (s *state) hash() string {
	h := uint64(14695981039346656037)
	put := func(v uint64) { h = (h ^ v) * 1099511628211 }
	put16 := func(v ...int64) {
		for ; len(v) >= 4; v = v[4:] {
			put(uint64(uint16(v[0])) | uint64(uint16(v[1]))<<16 | uint64(uint16(v[2]))<<32 | uint64(uint16(v[3]))<<48)
		}
		for _, x := range v {
			put(uint64(uint16(x)))
		}
	}
	low := func(v int64) uint64 { return uint64(uint16(v)) }
	put(uint64(s.accepted))
	for i := range s.components {
		y := &s.components[i]
		for k := range y.classes {
			z := &y.classes[k]
			put(uint64(z.fast<<32 | z.slow))
			put(uint64(z.recent)<<32 | low(z.shapeCost[0]))
			put(low(z.shapeCost[1])<<16 | low(z.shapeCost[2]))
			put16(z.cost[:]...)
			put16(z.weight[:6]...)
		}
		put(low(y.lean[0])<<32 | low(y.lean[1])<<16 | low(y.lean[2]))
		put(low(y.flagBias)<<16 | low(y.flagW[0]))
		put16(y.flagW[1:]...)
	}
	for i, c := range s.m.components {
		for k := range s.components[i].classes {
			if c.f.family == "angled" {
				put16(s.components[i].classes[k].weight[6:]...)
			}
		}
	}
	for i, c := range s.m.components {
		if y := &s.components[i]; c.f.family == "plain" {
			for j := range y.value {
				put(uint64(uint32(y.value[j]))<<32 | uint64(y.rank[j]<<16|y.count[j]))
			}
			put(uint64(y.any)<<32 | low(y.gain)<<16 | uint64(y.n))
		}
	}
	for i := range s.groups {
		x := &s.groups[i]
		put16(x.bias[:]...)
		put16(x.w[:]...)
		put(uint64(x.uses<<16 | x.steps))
	}
	for i, g := range s.m.groups {
		if g.Kind == "quat" {
			put16(s.groups[i].index[:]...)
		}
	}
	for i := range s.groups {
		for _, all := range s.groups[i].bit {
			for j := range all {
				put16(all[j][:]...)
			}
		}
	}
	for i, g := range s.m.groups {
		if g.str {
			put16(s.groups[i].same[:]...)
			put16(s.groups[i].sameBit[:]...)
		}
	}
	for i := range s.enough {
		put16(s.enough[i][:]...)
	}
	put16(s.none[:]...)
	put(uint64(s.last | s.repeated<<8))
	return fmt.Sprintf("%04x", uint16(h^h>>16^h>>32^h>>48))
}
