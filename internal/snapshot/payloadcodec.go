package snapshot

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// payloadCodec encodes or decodes the coded part of a payload. The same code does both, see
// [rangecoder.Coder]: an encoder passes values to be written, and a decoder receives the values
// that were read.
type payloadCodec struct {
	rangecoder.Coder
	schema       *Schema
	model        *model
	probs        []prob   // adaptive probabilities; each payload starts from those of the model
	lesson       observer // nil except while training models
	physics      physics  // physics of the coded snapshot
	contactRange int64    // distance of contacts, as physics.contact
	lowest       [3]int64 // height of the ground along each axis, Q4
	pairs        []pair   // the objects, unless sameSet is set
	sameSet      bool     // the objects are those of the baseline
	oldOnly      bool     // while encoding: objects that are not in the baseline are left out
	leftOut      int      // number of objects left out
	invalid      error    // error to return if the list of objects is invalid
	spare        []Object // unused list, for reuse
	refs         refFrames
	nearby       []neighbor
	moving       spatialGrid
	moves        []bool  // by object of the baseline: the object is not at rest
	changed      []bool  // while encoding, by object: the object differs from the baseline
	written      []int32 // indices of the objects that may differ from the baseline
	recent       []int32 // indices of the objects that may have changed since the oldest reference
	touched      int32
	resting      []int32 // indices of the objects at rest
	changes      int     // one bit per coded object, set if it moved; the newest is bit 0
	object       objectContext
	scaled       bool // object.scales is valid for objects whose references have the usual ages
}

// observer receives the decisions and predictions of an encoder. Models are trained with it.
type observer interface {
	// decided is called for each decision. k is its context.
	decided(k int, b bool)
	// fit is called for each prediction, with its weights, terms and error. scale is the logarithm
	// of the expected error. unit is the unit of err.
	fit(w *lms.Weights, x [lms.Terms]int64, err, scale, unit int64)
	// fitScale is called for each prediction of scale. err is the difference of the actual
	// logarithm from the prediction.
	fitScale(w *lms.Weights, x [lms.Terms]int64, err int64)
}

// neighbor holds the values of a coded object that are contexts for the objects after it.
type neighbor struct {
	position            [3]int64
	miss                [3]int64 // errors of the predicted position, Q4
	positionError, turn int64    // sums of the errors of position and orientation, Q4
}

// Spans are the pairs of references over which velocities are computed. Spans whose names begin
// with from end at the baseline.
const (
	fromFirst = iota // distance to the baseline
	fromSecond
	fromThird
	fromLast
	firstFromSecond
	secondFromThird
	thirdFromLast
	spans
)

// ends are the references of each span, the newer first; -1 is the baseline.
var ends = [spans][2]int{{-1, 0}, {-1, 1}, {-1, 2}, {-1, 3}, {0, 1}, {1, 2}, {2, 3}}

// velocities holds the velocity of one component over each span.
type velocities [spans]int64

// pose holds the rotations of an object, whose orientation is coded before its position.
type pose struct {
	known  bool
	from   quat.Fixed // orientation in the baseline
	ground int        // axis along which the object lies on the ground, or -1
	// Rotations in the third reference (set only if on the ground), the baseline and the snapshot.
	before, base, now quat.Matrix
	turn              [3]int64 // rotation from base to now
}

// begin selects the model of a payload and sets the probabilities to its initial ones.
func (pc *payloadCodec) begin(m *model) {
	pc.model = m
	copy(pc.probs, m.start)
	pc.Bad, pc.scaled = false, false
}

// rows codes the components of all objects. Objects at rest are last, because their contexts depend
// on the moving ones.
func (pc *payloadCodec) rows(cur *Set) {
	pc.nearby, pc.resting, pc.written, pc.changes = pc.nearby[:0], pc.resting[:0], pc.written[:0], 0
	pc.moving.reset()
	n := len(pc.pairs)
	if pc.sameSet {
		n = pc.refs.base.Len()
	}
	switch {
	case pc.Decoding && pc.sameSet:
		cur.shareObjects(pc.refs.base, &pc.spare)
		cur.reserve(n)
		cur.ints = append(cur.ints, pc.refs.base.ints...)
	case pc.Decoding:
		cur.prepare(n, &pc.spare)
		for _, p := range pc.pairs {
			cur.push(p.object)
		}
	}
	if pc.refs.base.group != nil {
		pc.findRecent(cur)
	} else {
		pc.findMoving()
		if !pc.Decoding {
			pc.findChanged(cur)
		}
	}
	for i := range n {
		switch at := pc.inBase(i); {
		case at < 0 && pc.oldOnly:
		case at < 0:
			pc.written = append(pc.written, int32(i))
			pc.codeAbsolute(cur.current(i))
		case pc.refs.step > 0 && !pc.moves[at]:
			pc.resting = append(pc.resting, int32(i))
		default:
			row := cur.current(i)
			base := row // equal to the baseline's row, and probably in the processor's cache
			if pc.Decoding || pc.changed[i] {
				base = pc.refs.base.Row(at)
				pc.written = append(pc.written, int32(i))
			}
			pc.load(at, base)
			pc.code(row)
		}
	}
	pc.codeResting(cur)
}

// codeAbsolute codes the components of an object that is not in the baseline.
func (pc *payloadCodec) codeAbsolute(row []int32) {
	for i := range pc.schema.fields {
		f := &pc.schema.fields[i]
		cur := row[pc.schema.at[i] : pc.schema.at[i]+f.N]
		if f.Class == schema.ClassBytes {
			pc.Bytes(cur, f.Lo, f.Hi)
			continue
		}
		for k, v := range cur {
			lo, hi := f.bounds(k)
			pc.Store(&cur[k], pc.Uniform(v, lo, hi))
		}
	}
}

// stepProbs are the constant probabilities that a payload has no references, and that their step is
// more than 1, 2 and 3.
var stepProbs = [...]rangecoder.Prob{{P: 1 << 11}, {P: 1 << 12}, {P: rangecoder.Half}, {P: rangecoder.Half}}

// codeStep codes the step of the references, 0 to maxStep.
func (pc *payloadCodec) codeStep(step int64) int64 {
	p := stepProbs
	if pc.Bit(&p[0], step == 0) {
		return 0
	}
	n := int64(1)
	for n < maxStep && pc.Bit(&p[n], step > n) {
		n++
	}
	return n
}

// init prepares a codec.
func (pc *payloadCodec) init(s *Schema, decoding bool) {
	pc.schema, pc.probs = s, make([]prob, s.layout.size)
	pc.Coder = rangecoder.NewCoder(rangecoder.MaxCount, decoding)
}

// encode codes cur against the loaded baseline. delta reports that the baseline is a snapshot.
func (pc *payloadCodec) encode(cur *Set, m *modelSet, delta bool) {
	if delta {
		pc.codeStep(pc.refs.step)
	}
	pc.begin(m.at(&pc.refs))
	pc.codePhysics(cur)
	pc.loadPhysics(cur)
	pc.objects(cur)
	pc.rows(cur)
}

// decodeInto decodes objects into dst, against the loaded baseline.
func (pc *payloadCodec) decodeInto(dst *Set, m *modelSet) error {
	pc.begin(m.at(&pc.refs))
	dst.Reset()
	pc.codePhysics(dst)
	pc.loadPhysics(dst)
	pc.invalid = malformed.ErrID
	if !pc.objects(nil) {
		return pc.invalid
	}
	pc.rows(dst)
	switch {
	case pc.Bad:
		return malformed.ErrBounds
	case !pc.Dec.Complete():
		return malformed.ErrLength
	}
	return nil
}

// bit codes a decision with the probability of context k, and adapts that probability.
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

// integer codes v, of at most 32 bits. at is the offset of its contexts, level the expected
// magnitude, and sign the context of its sign, 0 to signs+fineSigns-1.
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
	pc.Dec.Length(middle)
	at += middleSlot
	if pc.bit(at, size > n) {
		for n++; n < rangecoder.MaxLength && pc.bit(at+min(n-middle, slots-1-middleSlot), size > n); n++ {
		}
		return n
	}
	for ; n > 0 && !pc.bit(at-min(middle-n+1, middleSlot), size > n-1); n-- {
	}
	return n
}

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

// count codes v, of at most 32 bits: its length with the contexts at offset at, and its other bits
// with probability 1/2.
func (pc *payloadCodec) count(at, level int, v uint64) uint64 {
	n := pc.length(at, middle(level), bits.Len64(v))
	if n < 2 {
		return uint64(n)
	}
	rest := uint(n - 1)
	return 1<<rest | pc.Raw(v&(1<<rest-1), rest)
}

// predicted codes a component as its difference from guess (Q4), and returns the difference in Q4.
// lo and hi bound the component. The other arguments are as in integer, but sign is below signs. If
// a small difference is expected, its sign depends mostly on the rounding of guess.
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
