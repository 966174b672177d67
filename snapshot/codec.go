package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// payloadCodec encodes or decodes the coded part of a payload. The same code does both, see
// [rangecoder.Coder]: an encoder passes values in, and a decoder gets them.
type payloadCodec struct {
	rangecoder.Coder
	schema  *Schema
	state   *modelState // of the snapshot, updated while coding
	from    *modelState // of the baseline
	spare   []int16     // scratch of updateObjects
	sameSet bool        // the objects are those of the baseline
	invalid error       // reason if the objects are invalid
	refs    refFrames
	nearby  []neighbor
	moving  spatialGrid
	resting []int32 // indices of the objects at rest
	changes int     // whether the previous objects changed, one bit each
	object  objectContext
}

// pair is an object of the snapshot and its index in the baseline, or -1.
type pair struct {
	object Object
	base   int32
}

// objectContext holds the values that the codec computes while it codes the fields of an object.
// Positions, velocities and errors are in 1/16 of a step (Q4) and relate to the coded distance in
// time.
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
	span           [spans]span
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
	age            int64    // snapshots since the object came to rest
	close          int64    // log2 of the distance to the nearest moving object
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
	secondFromFourth
	thirdFromLast
	fourthFromLast
	spans
)

// span is a pair of rows, and the factor from their difference to a velocity.
type span struct {
	newer, older []int32
	scale        int64 // Q4, shifted by partShift
}

// ends are the references of each span, the newer first; -1 is the baseline.
var ends = [spans][2]int{{-1, 0}, {-1, 1}, {-1, 2}, {-1, refs - 1}, {0, 1}, {1, 2}, {1, 3}, {2, refs - 1}, {3, refs - 1}}

// velocities are those of one component over each span.
type velocities [spans]int64

// pose is the rotation of an object, if its orientation is coded before its position.
type pose struct {
	known             bool
	ground            int         // axis along which it lies on the ground, or -1
	before, base, now quat.Matrix // in the third reference (if on the ground), the baseline, the snapshot
	turn              [3]int64    // from base to now
}

// begin prepares the references once the mask is known.
func (pc *payloadCodec) begin(mask uint32, get func(lag int) *Set) {
	pc.refs.choose(mask, get)
	pc.refs.index()
	pc.refs.bound(pc.schema)
}

// copyState copies the model state of the baseline.
func (pc *payloadCodec) copyState() {
	pc.state.copyFrom(pc.from)
	n := pc.refs.base.Len()
	pc.state.last, pc.state.rested = resize(pc.state.last, len(pc.schema.fields)*n), resize(pc.state.rested, n)
	clear(pc.state.last[copy(pc.state.last, pc.from.last):])
	clear(pc.state.rested[copy(pc.state.rested, pc.from.rested):])
}

func resize(s []int16, n int) []int16 {
	if cap(s) < n {
		return make([]int16, n, n+n/4)
	}
	return s[:n]
}
