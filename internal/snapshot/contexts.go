package snapshot

import "github.com/uplink-rpc/uplink/internal/codec/rangecoder"

// prob is the probability that a decision is true: the upper 13 bits are the probability in
// 1/65,536, and the lower three select its adaptation rate.
type prob uint16

const (
	rateMask = 7
	rates    = rateMask + 1
	// fastest is log2 of the fastest rate: each decision moves the probability by a quarter of the
	// way to its outcome. Each further rate is half as fast.
	fastest = 2
	// unlikely is the minimum probability of either outcome, in 1/65,536.
	unlikely = 16
	// even is the initial probability of decisions without a better estimate.
	even prob = rangecoder.Half | 2
)

// layout holds offsets into the probabilities of a schema's models. A slice has one offset per
// field of a class; a context is one probability.
type layout struct {
	numbers []int // integers: numberKinds per field
	turns   []int // index of the largest component; an integer in flight; an integer on the ground
	angles  []int // an integer
	flags   []int // flagContexts; then 2 for an unmoved object at rest, by whether the flag was above its minimum
	strings []int // string replaced, by whether the object moved (2); length differs; byte unchanged (2)
	same    []int // for fields of all classes: the field of a moved object differs from the baseline (64)

	changed   int // an object moved (256)
	disturbed int // an object at rest changed: 4 per distance to the nearest moving object
	how       int // a changed object at rest moved: 2 per distance to the nearest moving object
	quiet     int // an object at rest changed far from moving objects: any object; any in a block; this object
	removed   int // any object was removed; this object was removed
	added     int // number of objects that are not in the baseline
	gap       int // difference between the ids of added objects
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

// An integer has contexts for its length (at each level of expected magnitude), its sign, its sign
// if a small difference is expected (by the fraction of the prediction), and its first bits (by the
// excess of its length over the expected length).
const (
	levels      = 40 // levels of expected magnitude, three per octave
	slots       = 12 // contexts of a length, by its distance from the middle of the level
	middleSlot  = 5
	signs       = 9 * 3 * 3
	signsAt     = levels * slots
	fineLevels  = 9 // levels below an expected magnitude of 4 steps: the sign depends on the fraction
	fractions   = 8 // fractions of a step that have contexts of their own
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

// startLength sets the probabilities of lengths: a magnitude exceeds x with probability m / (m +
// x), where m is the median magnitude of the level.
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
