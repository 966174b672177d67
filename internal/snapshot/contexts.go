package snapshot

import "github.com/uplink-rpc/uplink/internal/codec/rangecoder"

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
