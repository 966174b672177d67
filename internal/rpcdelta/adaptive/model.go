package adaptive

import (
	"errors"
	"math"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// MaxFrames is the maximum number of frames in a payload.
const MaxFrames = 16

// MaxRing is the maximum number of past frames that the codec reads, and the maximum age of a
// baseline.
const MaxRing = 64

// LearnReach is the number of sequence numbers that learning a frame spans, the frame included. An
// end keeps this many frames in addition to those that can be baselines.
const LearnReach = 25

var (
	// ErrMalformed is returned for a payload that no encoder produces.
	ErrMalformed = errors.New("adaptive: malformed payload")
	// ErrBaseline is returned if the baseline is unknown or is not the last frame learned.
	ErrBaseline = errors.New("adaptive: baseline is not known")
)

// Model is a compiled list of fields. It is immutable and safe for concurrent use.
type Model struct {
	groups     []group
	components []component // predicted components, by group
	bitSets    []component // components of bit sets, by group
	// Sizes of the slices of a modelState.
	inputs, lists, quats, bits, blobs int

	tables  *tables
	initial modelState // state of a stream that has not accepted any frame
}

// family is a set of experts that predict a component.
type family uint8

const (
	familyPlain        family = iota // slopes of the component itself
	familyAngled                     // slopes, and scalars of the same frame
	familyDerived                    // old and new value of the derivative
	familyTurned                     // quaternion with an angular velocity
	familyExtrapolated               // quaternion without an angular velocity
)

const families = int(familyExtrapolated) + 1

// form is the way in which a group's values are coded.
type form uint8

const (
	formNumbers form = iota
	formQuat
	formBits
	formBytes
)

// group is a compiled field. Groups are in coding order.
type group struct {
	form      form
	family    family
	field     int    // index of the field
	key       uint64 // Field.Key
	at, n     int    // range of components in a frame
	firstComp int    // first of Model.components, or of Model.bitSets
	numComps  int
	index     int // index of a quaternion, a byte string or the first bit of a bit set in bitModels

	diffsAt   int  // first of refFrames.diffs
	diffShift uint // shift that drops the diffs of other groups from eight loaded ones

	// Prediction.
	velocity       int // first component of the derivative, or -1
	velocityFactor int64
	scalars        [2]int // components that predict an angle
	numScalars     int
	counter        bool // the reference may be replaced by the counter's next step

	// Keyframes, and bounds.
	minBitsBefore uint // minimum size of the static code of all groups before this one
	noLength      bool // angles: magnitudes have no common length
	maxLength     uint // maximum length of a magnitude, in bits
	lengthBits    uint // width of a magnitude's length
	hasSigns      bool // values may be negative

	// Quaternions.
	quatMax     int32 // bound of a component
	quatBits    uint  // width of a component
	unpackScale int64
	packScale   int64

	// Byte strings.
	blob, minBytes, maxBytes int
}

// component is a component of a number, a quaternion or a bit set.
type component struct {
	at     int  // index in Frame.Ints
	wrap   uint // values are modulo 2^wrap, unless it is 0
	mask   int32
	signed bool
	lo, hi int64
	inputs int // index of the weights of the scalars, or -1
	list   int // index of the list of frequent values, or -1
}

// builder compiles fields into groups, each after the groups that predict it.
type builder struct {
	m        *Model
	fields   []Field
	scalars  []int
	progress []uint8 // by field: 0 not visited, 1 being added, 2 added
}

func (b *builder) build() {
	b.progress = make([]uint8, len(b.fields))
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
				b.addField(i)
			}
		}
	}
	before := uint(1) // the bit that codes the number of frames
	for i := range b.m.groups {
		g := &b.m.groups[i]
		g.diffsAt, g.diffShift = g.at, 8*uint(max(0, 8-g.n))
		if g.form == formBytes {
			g.diffsAt, g.diffShift = b.components()+g.blob, 8*7
		}
		g.minBitsBefore = before
		before += g.minKeyframeBits()
	}
}

// components returns the number of components of a frame.
func (b *builder) components() (n int) {
	for i := range b.fields {
		n = max(n, b.fields[i].At+b.fields[i].N)
	}
	return n
}

// derivative returns the index of the derivative of field i, or -1.
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
	if f.VelocityAt < 0 || f.PerTick == 0 {
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

// rank orders fields: cheap fields and fields that predict others come first.
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
	rank := 5
	if f.Kind == Angle {
		rank = 4
	}
	for j := range b.fields {
		if b.derivative(j) == i {
			if b.fields[j].Kind == Quat {
				return 2
			}
			rank = 3
		}
	}
	return rank
}

// addField adds field i after its derivative. A cycle of derivatives is cut where it closes.
func (b *builder) addField(i int) {
	if b.progress[i] != 0 {
		return
	}
	b.progress[i] = 1
	d := b.derivative(i)
	if d >= 0 {
		b.addField(d)
		if b.progress[d] != 2 {
			d = -1
		}
	}
	b.addGroup(i, d)
	b.progress[i] = 2
}

func (b *builder) addGroup(i, derivative int) {
	m, f := b.m, &b.fields[i]
	g := group{field: i, at: f.At, n: f.N, firstComp: len(m.components), velocity: -1, key: f.Key}
	if derivative >= 0 {
		g.velocity = f.VelocityAt
	}
	switch f.Kind {
	case Number, Angle, Integer:
		b.addNumbers(&g, f)
	case Quat:
		b.addQuat(&g, f)
	case Bits:
		g.form, g.index, g.firstComp = formBits, m.bits, len(m.bitSets)
		for k := range f.N {
			w := halfWidth(f.Bits, k)
			m.bitSets = append(m.bitSets, component{at: f.At + k, wrap: w, list: -1})
			m.bits += int(w)
		}
		g.numComps = f.N
		m.groups = append(m.groups, g)
		return
	case Bytes:
		g.form, g.index, g.n = formBytes, m.blobs, 0
		g.blob, g.minBytes, g.maxBytes = f.Blob, f.MinBytes, f.MaxBytes
		m.blobs++
	}
	g.numComps = len(m.components) - g.firstComp
	m.groups = append(m.groups, g)
}

// halfWidth returns the width of component k of a field whose values have w bits.
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
		g.family = familyAngled
		g.numScalars = copy(g.scalars[:], b.scalars)
	case g.velocity >= 0:
		g.family = familyDerived
		g.velocityFactor = f.PerTick
	}
	g.counter = f.Kind == Integer
	for k := range f.N {
		c := component{at: f.At + k, lo: int64(f.Lo), hi: int64(f.Hi), list: -1, inputs: -1}
		switch f.Kind {
		case Angle:
			c.wrap, g.noLength = f.Bits, true
		case Integer:
			c.wrap = halfWidth(f.Bits, k)
			c.signed = f.Signed && (f.Bits <= 32 || k%2 == 1)
		case Number, Quat, Bits, Bytes:
		}
		if c.wrap > 0 {
			c.lo, c.hi = math.MinInt32, math.MaxInt32
			c.mask = int32(uint32(1<<c.wrap - 1))
		}
		if g.family == familyPlain {
			c.list = b.m.lists
			b.m.lists++
		}
		if g.family == familyAngled {
			c.inputs = b.m.inputs
			b.m.inputs++
		}
		b.m.components = append(b.m.components, c)
	}
	g.setKeyframeCode(b.m.components[g.firstComp:])
}

func (b *builder) addQuat(g *group, f *Field) {
	g.form, g.family, g.index = formQuat, familyExtrapolated, b.m.quats
	b.m.quats++
	g.n, g.quatMax = 4, f.Hi
	g.quatBits = uint(bits.Len32(uint32(2 * f.Hi)))
	// 2^46 / (quatMax * sqrt 2), and quatMax * sqrt 2 * 2^16
	m := max(1, int64(f.Hi))
	g.unpackScale = (1<<45/m*sqrt2Q16 + 1<<15) >> 16
	g.packScale = m * sqrt2Q16
	if g.velocity >= 0 {
		g.family = familyTurned
		g.velocityFactor = f.PerTick
	}
	for k := range 3 {
		c := component{at: f.At + 1 + k, lo: -int64(f.Hi), hi: int64(f.Hi), list: -1, inputs: -1}
		b.m.components = append(b.m.components, c)
	}
}

// sqrt2Q16 is the square root of 2 in Q16, rounded.
const sqrt2Q16 = 92682

// setKeyframeCode sets the parameters of the static code of numbers.
func (g *group) setKeyframeCode(comps []component) {
	longest := 0
	for _, c := range comps {
		if c.wrap > 0 {
			longest = max(longest, int(c.wrap))
		} else {
			longest = max(longest, bits.Len64(uint64(max(c.hi, -c.lo, 0))))
		}
	}
	last := &comps[len(comps)-1]
	g.maxLength, g.lengthBits = uint(longest), uint(bits.Len(uint(longest)))
	g.hasSigns = last.signed || last.wrap == 0 && last.lo < 0
}

// minKeyframeBits returns the minimum size of a group's static code.
func (g *group) minKeyframeBits() uint {
	switch g.form {
	case formNumbers:
		if g.noLength {
			return uint(g.n)
		}
		return g.lengthBits
	case formQuat:
		return 2 + 3*g.quatBits
	case formBits:
		return uint(g.n)
	case formBytes:
		return uint(8 * g.minBytes)
	}
	return 0
}

// KeyframeBytes returns the approximate size of a payload with the single frame frame: at most one
// byte too many, and a few bytes too few if the payload ends in zeros.
func (m *Model) KeyframeBytes(frame *schema.Frame) int {
	s := keyframeSize{bits: 1} // codes the number of frames, one
	for i := range m.groups {
		g := &m.groups[i]
		switch g.form {
		case formNumbers:
			if g.noLength {
				s.flat(frame.Ints, m.components[g.firstComp:][:g.numComps])
			} else {
				s.numbers(frame.Ints, m.components[g.firstComp:][:g.numComps], g)
			}
		case formQuat:
			s.quat(frame.Ints[g.at:][:4], g)
		case formBits:
			s.flat(frame.Ints, m.bitSets[g.firstComp:][:g.numComps])
		case formBytes:
			s.bytes(frame.Bytes[g.blob], g)
		}
	}
	return int(s.used-uint(bits.TrailingZeros32(s.last))+7) / 8
}

// MinKeyframeBytes returns a lower bound of KeyframeBytes in less time: the minimum size of
// everything before the last component that is not coded as zeros.
func (m *Model) MinKeyframeBytes(frame *schema.Frame) int {
	for i := len(m.groups) - 1; i >= 0; i-- {
		g := &m.groups[i]
		if g.n == 0 || frame.Ints[g.at+g.n-1] == -g.quatMax {
			continue
		}
		before := g.minBitsBefore
		if g.form == formQuat {
			before += 2 + 2*g.quatBits
		}
		return int(before+8) / 8
	}
	return 0
}

// int64Of returns the value of a component's int32.
func (c *component) int64Of(v int32) int64 {
	if c.wrap == 0 || c.signed {
		return int64(v)
	}
	return int64(uint32(v))
}

// NewState returns the state of a stream that has not accepted any frame. ring is the number of
// frames that both ends keep, the smaller of both rings; 0 and values above [MaxRing] mean MaxRing.
// Both ends must pass the same value.
func (m *Model) NewState(ring int) *State {
	if ring <= 0 || ring > MaxRing {
		ring = MaxRing
	}
	s := &State{m: m, learned: m.newState(), ring: int64(ring)}
	s.Reset()
	return s
}

func (m *Model) newState() modelState {
	return modelState{
		components: make([]componentState, len(m.components)),
		inputs:     make([]inputWeights, m.inputs),
		lists:      make([]valueList, m.lists),
		groups:     make([]groupState, len(m.groups)),
		bitModels:  m.newBitModels(),
	}
}

func (m *Model) newBitModels() bitModels {
	return bitModels{
		index: make([][ambiguityLevels]uint16, m.quats),
		bits:  make([][4]uint16, m.bits),
		bytes: make([]bytesModel, m.blobs),
	}
}

// flagKind returns the kind of the weights of the group's flag.
func (g *group) flagKind() paramKind {
	switch g.form {
	case formBits:
		return paramBitsFlag
	case formBytes:
		return paramBytesFlag
	case formQuat:
		if g.family == familyTurned {
			return paramTurnedFlag
		}
		return paramExtrapolatedFlag
	case formNumbers:
	}
	switch {
	case g.family == familyAngled:
		return paramAngledFlag
	case g.family == familyDerived:
		return paramDerivedFlag
	case g.counter:
		return paramIntegerFlag
	}
	return paramNumberFlag
}

// params lists the parameters of group i, its flag first. The order is part of the format of
// priors.
func (m *Model) params(i int) []paramRef {
	g := &m.groups[i]
	out := []paramRef{{kind: g.flagKind(), index: i}, {kind: paramUses, index: i}}
	switch g.form {
	case formBits:
		for k := range g.numComps {
			for range m.bitSets[g.firstComp+k].wrap {
				out = append(out, paramRef{kind: paramBit, index: g.index + len(out) - 2})
			}
		}
		return out
	case formBytes:
		return append(out, paramRef{kind: paramBytes, index: g.index})
	case formQuat:
		x := paramRef{kind: paramExtrapolatedIndex, index: g.index}
		if g.family == familyTurned {
			x.kind = paramTurnedIndex
		}
		out = append(out, x)
	case formNumbers:
	}
	for k := g.firstComp; k < g.firstComp+g.numComps; k++ {
		f := paramKind(g.family)
		out = append(out, paramRef{kind: paramWeights + f, index: k}, paramRef{kind: paramScale, index: k},
			paramRef{kind: paramCosts + f, index: k}, paramRef{kind: paramCompFlag + f, index: k})
		if l := m.components[k].list; l >= 0 {
			out = append(out, paramRef{kind: paramListProbs, index: l}, paramRef{kind: paramValues, index: l, comp: k})
		}
	}
	return out
}

// followsStep reports whether all components of a counter continue at their last rate.
func (m *Model) followsStep(p *refFrames, g *group, frame *schema.Frame) bool {
	for k := range g.numComps {
		c := &m.components[g.firstComp+k]
		if frame.Ints[c.at] != nextStep(p, c) {
			return false
		}
	}
	return true
}

// fit brings x into the component's range: modulo 2^wrap, or clamped.
func (c *component) fit(x int64) int32 {
	switch {
	case c.wrap == 0:
		return int32(max(c.lo, min(c.hi, x)))
	case c.signed:
		return int32(wrapTo(x, c.wrap))
	}
	return int32(x) & c.mask
}

// newMeans returns empty means for all parameters of the model.
func (m *Model) newMeans() groupMeans {
	out := make(groupMeans, len(m.groups))
	for i := range out {
		all := m.params(i)
		out[i] = make([]paramMean, len(all))
		for k, x := range all {
			out[i][k].frequent = x.kind == paramValues
		}
	}
	return out
}
