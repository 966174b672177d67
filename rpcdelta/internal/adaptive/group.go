package adaptive

import (
	"math"
	"math/bits"
)

// family is a set of predictors.
type family uint8

const (
	plain        family = iota // slopes of the component's own past
	angled                     // and scalars beside it
	derived                    // its derivative's old and new value
	turned                     // a quaternion with an angular velocity
	extrapolated               // a quaternion without
)

const families = int(extrapolated) + 1

// group is a field in coding order.
type group struct {
	form       form
	family     family
	at, n      int  // frame components
	changes    int  // of its components, or of its byte string: the first of [past.moved]
	beside     uint // bits of eight changes that are not the group's
	first      int  // of Model.comps, or of sets
	comps      int  // components with state
	velocity   int  // frame offset of the derivative
	factor     int64
	counts     bool
	inputs     [2]int // scalars that drive it
	ninputs    int
	limit      int32 // quat
	width      uint  // quat: bits of a component
	unpack     int64
	chart      int64
	bare       bool // angles: without a common length
	longest    uint // bits of a magnitude, at most
	lengthBits uint // of a magnitude's length
	before     uint // bits that the static code takes at least ahead of the group
	signs      bool // there may be negative ones
	index      int  // adaptive counters: of a quat, a bit set or a byte string
	blob       int
	minBytes   int
	maxBytes   int
	key        uint64 // what a prior knows the field by
	field      int    // its index
}

// form is how a group's values are coded.
type form uint8

const (
	formNumbers form = iota
	formQuat
	formBits
	formBytes
)

// comp is a component that is predicted, or a component of a bit set.
type comp struct {
	at     int
	wrap   uint // values are modulo 2^wrap; 0 is not at all
	mask   int32
	signed bool
	lo, hi int64
	drive  int // weights of the scalars beside it, -1 none
	list   int // list of frequent values, -1 none
}

// builder orders fields so that each comes after those that predict it.
type builder struct {
	m       *Model
	fields  []Field
	rate    float64
	scalars []int
	state   []uint8 // by field: 0 waits, 1 begun, 2 done
}

func (b *builder) build() {
	b.state = make([]uint8, len(b.fields))
	for i := range b.fields {
		f := &b.fields[i]
		if f.Kind == Number && f.Scalar {
			for k := range f.N {
				b.scalars = append(b.scalars, f.At+k)
			}
		}
	}
	for rank := range 8 {
		for i := range b.fields {
			if b.rank(i) == rank {
				b.visit(i)
			}
		}
	}
	before := uint(1) // that there is one row
	for i := range b.m.groups {
		g := &b.m.groups[i]
		g.changes, g.beside = g.at, 8*uint(max(0, 8-g.n))
		if g.form == formBytes {
			g.changes, g.beside = b.width()+g.blob, 8*7
		}
		g.before = before
		before += g.leastBits()
	}
}

// width is how many components a frame has.
func (b *builder) width() (n int) {
	for i := range b.fields {
		n = max(n, b.fields[i].At+b.fields[i].N)
	}
	return n
}

// derivative is the index of a field's derivative, or -1.
func (b *builder) derivative(i int) int {
	f := &b.fields[i]
	want := f.N
	switch f.Kind {
	case Quat:
		want = 3
	case Number, Angle:
	case Integer, Bits, Bytes:
		return -1
	}
	if f.VelocityAt < 0 || f.VelocityFactor == 0 {
		return -1
	}
	for j := range b.fields {
		v := &b.fields[j]
		if j != i && v.Kind == Number && v.At == f.VelocityAt && v.N == want {
			return j
		}
	}
	return -1
}

// rank orders kinds: what is cheap and what predicts others comes first.
func (b *builder) rank(i int) int {
	f := &b.fields[i]
	switch f.Kind {
	case Integer, Bits:
		return 0
	case Quat:
		return 6
	case Bytes:
		return 7
	case Number, Angle:
	}
	if f.Scalar && f.Kind == Number {
		return 1
	}
	drives := 0
	for j := range b.fields {
		if b.derivative(j) == i {
			if b.fields[j].Kind == Quat {
				return 2
			}
			drives = 3
		}
	}
	switch {
	case drives != 0:
		return drives
	case f.Kind == Angle:
		return 4
	}
	return 5
}

// visit adds field i, its derivative first. A circle is cut where it closes.
func (b *builder) visit(i int) {
	if b.state[i] != 0 {
		return
	}
	b.state[i] = 1
	d := b.derivative(i)
	if d >= 0 {
		b.visit(d)
		if b.state[d] != 2 {
			d = -1
		}
	}
	b.add(i, d)
	b.state[i] = 2
}

func (b *builder) add(i, derivative int) {
	m, f := b.m, &b.fields[i]
	g := group{field: i, at: f.At, n: f.N, first: len(m.comps), velocity: -1, key: f.Key}
	if derivative >= 0 {
		g.velocity = f.VelocityAt
	}
	switch f.Kind {
	case Number, Angle, Integer:
		b.addNumbers(&g, f)
	case Quat:
		b.addQuat(&g, f)
	case Bits:
		g.form, g.index, g.first = formBits, m.bits, len(m.sets)
		for k := range f.N {
			w := halfWidth(f.Bits, k)
			m.sets = append(m.sets, comp{at: f.At + k, wrap: w, list: -1})
			m.bits += int(w)
		}
		g.comps = f.N
		m.groups = append(m.groups, g)
		return
	case Bytes:
		g.form, g.index, g.n = formBytes, m.blobs, 0
		g.blob, g.minBytes, g.maxBytes = f.Blob, f.MinBytes, f.MaxBytes
		m.blobs++
	}
	g.comps = len(m.comps) - g.first
	m.groups = append(m.groups, g)
}

// halfWidth is the width of component k of a field of values of w bits.
func halfWidth(w uint, k int) uint {
	if w <= 32 {
		return w
	}
	if k%2 == 0 {
		return 32
	}
	return w - 32
}

func (b *builder) addNumbers(g *group, f *Field) {
	switch {
	case f.Kind == Angle && g.velocity < 0 && len(b.scalars) > 0:
		g.family = angled
		g.ninputs = copy(g.inputs[:], b.scalars)
	case g.velocity >= 0:
		g.family = derived
		g.factor = fixed(f.VelocityFactor/b.rate, 19)
	}
	g.counts = f.Kind == Integer
	for k := range f.N {
		c := comp{at: f.At + k, lo: int64(f.Lo), hi: int64(f.Hi), list: -1, drive: -1}
		switch f.Kind {
		case Angle:
			c.wrap, g.bare = f.Bits, true
		case Integer:
			c.wrap = halfWidth(f.Bits, k)
			c.signed = f.Signed && (f.Bits <= 32 || k%2 == 1)
		case Number, Quat, Bits, Bytes:
		}
		if c.wrap > 0 {
			c.lo, c.hi = math.MinInt32, math.MaxInt32
			c.mask = int32(uint32(1<<c.wrap - 1))
		}
		if g.family == plain {
			c.list = b.m.lists
			b.m.lists++
		}
		if g.family == angled {
			c.drive = b.m.drives
			b.m.drives++
		}
		b.m.comps = append(b.m.comps, c)
	}
	g.staticCode(b.m.comps[g.first:])
}

func (b *builder) addQuat(g *group, f *Field) {
	g.form, g.family, g.index = formQuat, extrapolated, b.m.quats
	b.m.quats++
	g.n, g.limit = 4, f.Hi
	g.width = uint(bits.Len32(uint32(2 * f.Hi)))
	// 2^46 / (limit * sqrt 2), and limit * sqrt 2 * 2^16
	m := max(1, int64(f.Hi))
	g.unpack = (1<<45/m*sqrt2Q16 + 1<<15) >> 16
	g.chart = m * sqrt2Q16
	if g.velocity >= 0 {
		g.family = turned
		g.factor = fixed(float64(f.VelocityFactor)/b.rate/4, 38)
	}
	for k := range 3 {
		b.m.comps = append(b.m.comps, comp{at: f.At + 1 + k, lo: -int64(f.Hi), hi: int64(f.Hi), list: -1, drive: -1})
	}
}

// sqrt2Q16 is the square root of 2 times 2^16, rounded.
const sqrt2Q16 = 92682

// fixed is x times 2^q, rounded, within 2^40 either way.
func fixed(x float64, q int) int64 {
	v := math.Floor(float64(math.Ldexp(x, q)) + 0.5)
	if !(v > -(1<<40) && v < 1<<40) {
		return 0
	}
	return int64(v)
}
