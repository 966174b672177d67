package snapshot

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// prob is the probability that a decision is true: its upper 13 bits are of 65,536, and its lower
// three say how fast it adapts.
type prob uint16

const (
	rateMask = 7
	rates    = rateMask + 1
	// fastest is log2 of the fastest rate: each decision moves the probability by a quarter of the
	// way to its outcome. Each further rate is half as fast.
	fastest = 2
	// unlikely is the distance that probabilities keep from 0 and 1.
	unlikely = 16
	// even is the probability of a decision of which nothing is known.
	even prob = rangecoder.Half | 2
)

// bit codes a decision with the probability of context k, which adapts.
func (pc *payloadCodec) bit(k int, b bool) bool {
	p := &pc.probs[k]
	v := int32(*p)
	is := v &^ rateMask
	if pc.Decoding {
		b = pc.Dec.BitNoRenorm(uint32(rangecoder.Scale - is))
		pc.Dec.Renorm()
	} else {
		if pc.lesson != nil {
			pc.lesson.decided(k, b)
		}
		pc.Enc.BitNoRenorm(b, uint32(rangecoder.Scale-is))
		pc.Enc.Renorm()
	}
	to := int32(unlikely)
	if b {
		to = rangecoder.Scale - unlikely
	}
	*p = prob((is+(to-is)>>(v&rateMask+fastest))&^rateMask | v&rateMask)
	return b
}

// layout says where the contexts of decisions are among all of a schema. Each slice has one of them
// for each field of a class.
type layout struct {
	numbers []int // numberKinds integers
	turns   []int // the largest component, and an integer in flight and one on the ground
	angles  []int // an integer
	flags   []int // flagContexts; then objects at rest that did not move, by whether it was set
	strings []int // replaced, by whether the object moved; other length; byte kept
	same    []int // of all fields: unchanged in an object that moved, 64 contexts

	changed   int // whether an object moved, 256 contexts
	disturbed int // whether an object at rest changed, four by distance of the nearest moving one
	how       int // whether it moved, two by distance of the nearest moving one
	quiet     int // whether one changed far from what moves: any, any of a block, this
	removed   int // whether any objects were removed, and whether this one was
	added     int // the number of those that are not in the baseline
	gap       int // between their ids
	physics   int

	size int
}

const (
	numberKinds  = 4
	largestSize  = largestLevels*quatDoubts + 2
	turnSize     = largestSize + 2*integerSize
	flagContexts = 128
	stringSize   = 5
	sameSize     = 64
	// contactContexts is the number of contexts of objects at rest: the distance to the nearest
	// moving object in half octaves.
	contactContexts = 128
)

func (s *Schema) newLayout() (l layout) {
	take := func(n int) int {
		l.size += n
		return l.size - n
	}
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			l.numbers = append(l.numbers, take(numberKinds*integerSize))
		case schema.ClassQuat:
			l.turns = append(l.turns, take(turnSize))
		case schema.ClassAngle:
			l.angles = append(l.angles, take(integerSize))
		case schema.ClassBytes:
			l.strings = append(l.strings, take(stringSize))
		default:
			l.flags = append(l.flags, take(flagContexts+2))
		}
		l.same = append(l.same, take(sameSize))
	}
	l.changed, l.disturbed, l.how, l.quiet, l.removed = take(256), take(4*contactContexts), take(2*contactContexts), take(3), take(2)
	l.added, l.gap, l.physics = take(slots), take(slots), take(slots)
	return l
}

// start returns the probabilities of a model that has learned nothing.
func (s *Schema) start() []prob {
	l := &s.layout
	p := make([]prob, l.size)
	for i := range p {
		p[i] = even
	}
	for _, at := range l.numbers {
		for k := range numberKinds {
			startInteger(p[at+k*integerSize:])
		}
	}
	for _, at := range l.turns {
		for k := range 2 {
			startInteger(p[at+largestSize+k*integerSize:])
		}
	}
	for _, at := range l.angles {
		startInteger(p[at:])
	}
	startLength(p[l.added:], addedLevel)
	startLength(p[l.gap:], gapLevel)
	startLength(p[l.physics:], physicsLevel)
	return p
}

// Initial levels of counts.
const (
	addedLevel   = 0
	gapLevel     = 6
	physicsLevel = 18
)

// The contexts of an integer: of its length at each level of expected magnitude, of its sign, of
// its sign where the fraction of the prediction counts, and of its first bits by how much longer it
// is than expected.
const (
	levels      = 40 // three per octave
	slots       = 12 // of a length, by its distance from the middle of the level
	middleSlot  = 5
	signs       = 9 * 3 * 3
	signsAt     = levels * slots
	fineLevels  = 9 // levels at which the fraction counts: less than 4 steps are expected
	fractions   = 8 // of a step
	fineSigns   = fineLevels / 3 * fractions * 3
	beyonds     = 16
	mantissasAt = signsAt + signs + fineSigns
	integerSize = mantissasAt + beyonds*4
)

// level returns the level of an expected magnitude, given as the logarithm (Q8) of the magnitude in
// Q4.
func level(scale int64) int { return int(min(max((scale+256)*3>>8, 0), levels-1)) }

// middle returns the length at which the decisions of a level begin, in bits.
func middle(level int) int { return (level + 1) / 3 }

func startInteger(p []prob) {
	for i := range levels {
		startLength(p[i*slots:], i)
	}
}

// startLength sets the probabilities of lengths: with m the median magnitude of the level, a
// magnitude exceeds x with probability m / (m + x).
func startLength(p []prob, level int) {
	mid := []int64{72, 90, 114}[level%3] << (level / 3) * 2 // Q8
	longer := func(k int) int64 { return mid * 65536 / (mid + 256<<k - 128) }
	for i := range slots {
		k := i - middleSlot + middle(level)
		if k < 0 {
			continue
		}
		v := longer(k)
		switch {
		case i > middleSlot:
			v = v * 65536 / max(longer(k-1), 1)
		case i < middleSlot:
			v = (v - longer(k+1)) * 65536 / (65536 - longer(k+1))
		}
		p[i] = prob(min(max(v, 200), 65336))&^rateMask | 3
	}
}

// integer codes v, of at most 32 bits. level is the expected magnitude; sign, below signs plus
// fineSigns, is the context of the sign.
func (pc *payloadCodec) integer(at, level, sign int, v int64) int64 {
	n := pc.length(at+level*slots, middle(level), bits.Len64(uint64(max(v, -v))))
	if n == 0 {
		return 0
	}
	negative := pc.bit(at+signsAt+sign, v < 0)
	mag := uint64(1)
	if n > 1 {
		beyond := min(max(n-middle(level)+beyonds/2, 0), beyonds-1)
		mag = pc.mantissa(at+mantissasAt+4*beyond, uint(n-1), uint64(max(v, -v)))
	}
	if negative {
		return -int64(mag)
	}
	return int64(mag)
}

// length codes the length of a magnitude in bits: whether it exceeds middle, then in unary upward
// or downward from there.
func (pc *payloadCodec) length(at, middle, size int) int {
	n := middle
	at += middleSlot
	if pc.bit(at, size > n) {
		for n++; n < maxLength && pc.bit(at+min(n-middle, slots-1-middleSlot), size > n); n++ {
		}
		return n
	}
	for ; n > 0 && !pc.bit(at-min(middle-n+1, middleSlot), size > n-1); n-- {
	}
	return n
}

const maxLength = 32

// mantissa codes the low n bits of v, whose bit n is set. The first two bits have contexts.
func (pc *payloadCodec) mantissa(at int, n uint, v uint64) uint64 {
	node := uint64(1)
	for n > 0 && node < 4 {
		n--
		node <<= 1
		if pc.bit(at+int(node>>1), v>>n&1 != 0) {
			node |= 1
		}
	}
	if n > 0 {
		node = node<<n | pc.Raw(v&(1<<n-1), n)
	}
	return node
}

// count codes v, of at most 32 bits: its length with contexts for a level, and its other bits raw.
func (pc *payloadCodec) count(at, level int, v uint64) uint64 {
	n := pc.length(at, middle(level), bits.Len64(v))
	if n < 2 {
		return uint64(n)
	}
	rest := uint(n - 1)
	return 1<<rest | pc.Raw(v&(1<<rest-1), rest)
}

// predicted codes a component with bounds by its difference from guess, which is in Q4, and returns
// that difference in Q4. The other arguments are those of integer, with sign below signs. If the
// difference is probably small, its sign depends most on how guess is rounded.
func (pc *payloadCodec) predicted(at, level, sign int, guess int64, component *int32, lo, hi int32) int64 {
	v := (guess + 8) >> 4
	if level < fineLevels {
		fraction := int(guess-v*16+8) * fractions >> 4
		sign = signs + (level/3*fractions+fraction)*3 + sign%3
	}
	v += pc.integer(at, level, sign, int64(*component)-v)
	pc.Store(component, pc.Check(v, lo, hi))
	return int64(*component)*16 - guess
}
