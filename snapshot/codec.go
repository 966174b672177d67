package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/schema"
)

// payloadCodec encodes or decodes the coded part of a payload. The same code does both, see
// [rangecoder.Coder]: an encoder passes values in, and a decoder gets them.
type payloadCodec struct {
	rangecoder.Coder
	schema       *Schema
	model        *model
	probs        []prob   // the model's, adapted while coding
	lesson       observer // or nil
	physics      physics  // of the snapshot
	contactRange int64    // of the physics
	lowest       [3]int64 // the ground, Q4
	pairs        []pair   // the objects, unless sameSet is set
	sameSet      bool     // the objects are those of the baseline
	oldOnly      bool     // while encoding: objects that are not in the baseline are left out
	leftOut      int      // how many
	invalid      error    // reason if the objects are invalid
	spare        []Object // a list that no set uses
	refs         refFrames
	nearby       []neighbor
	moving       spatialGrid
	moves        []bool  // by object of the baseline: it is not at rest
	changed      []bool  // by object, while encoding: it is not that of the baseline
	written      []int32 // indices of the objects that may differ from the baseline
	recent       []int32 // indices of the objects that may have changed since the oldest reference
	touched      int32
	resting      []int32 // indices of the objects at rest
	changes      int     // whether the previous objects changed, one bit each
	object       objectContext
	scaled       bool // object.scales are those of most objects: of the usual ages, or without references
}

// observer observes what is coded: the training of models.
type observer interface {
	// decided is called with each decision, of context k.
	decided(k int, b bool)
	// fit is called with each prediction: its weights, terms and error, and the logarithm of the
	// error that was expected, in units.
	fit(w *lms.Weights, x [lms.Terms]int64, err, scale, unit int64)
	// fitScale is called with each prediction of such a logarithm.
	fitScale(w *lms.Weights, x [lms.Terms]int64, err int64)
}

// objectContext holds values of the coded object. Positions, velocities and errors are in 1/16 of a
// step (Q4) and relate to the coded distance in time.
type objectContext struct {
	index          int // in the baseline
	base           []int32
	row            [refs][]int32
	lag            [refs]int64
	moved          int // bits: differs from the first, second and last reference
	class          int
	speedContext   int   // distance moved since the last reference, 0 to 3
	jerk           int64 // change of velocity over all references
	jerk1          int64 // change of velocity over the newest references
	speed          int64
	logJerk        int64
	logJerk1       int64
	logSpeed       int64
	scales         [spans]int64 // Q4, shifted by partShift: from a difference over each span to a velocity
	usual          bool         // lag has the ages of References
	speeds         [3]velocities
	near           *neighbor
	gap            int64    // log2 of the distance to near
	miss           [3]int64 // errors of the predicted position
	missed         int64    // sum of miss
	flag           int
	pose           pose
	turned         int64 // error of the predicted orientation
	velocityChange [3]int64
	drift          [3]int64 // velocity of the position
	resting        bool     // the object is at rest
}

// neighbor is the context that a coded object leaves for the following ones.
type neighbor struct {
	position            [3]int64
	miss                [3]int64 // errors of the predicted position, Q4
	positionError, turn int64    // sums of the errors of both predictions, Q4
}

// Spans are the pairs of references over which velocities are computed. Those named from end at
// the baseline.
const (
	fromFirst = iota // to the baseline
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

// velocities are those of one component over each span.
type velocities [spans]int64

// pose is the rotation of an object, if its orientation is coded before its position.
type pose struct {
	known             bool
	from              quat.Fixed  // the baseline
	ground            int         // axis along which it lies on the ground, or -1
	before, base, now quat.Matrix // in the third reference (if on the ground), the baseline, the snapshot
	turn              [3]int64    // from base to now
}

// begin selects the model, and starts with its probabilities.
func (pc *payloadCodec) begin(m *model) {
	pc.model = m
	copy(pc.probs, m.start)
	pc.Bad, pc.scaled = false, false
}

// rows codes the components of all objects, those at rest last, when the others are known.
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
	if pc.refs.base.part != nil {
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
			base := row // if they are equal: it was read recently
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

// codeAbsolute codes an object that is not in the baseline.
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

// stepProbs are the constant probabilities that the payload does without references, that their
// step is more than 1, and more than 2 or 3.
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
