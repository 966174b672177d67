package perplayer

import (
	"cmp"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/snapshot"
)

// payloadCodec encodes the coded part of a payload.
type payloadCodec struct {
	rangecoder.Coder
	schema  *objectSchema
	state   *modelState // of the snapshot, updated while coding
	from    *modelState // of the baseline
	spare   []int16     // scratch of updateObjects
	sameSet bool        // the objects are those of the baseline
	refs    refFrames
	nearby  []neighbor
	moving  spatialGrid
	resting []int32 // indices of the objects at rest
	changes int     // whether the previous objects changed, one bit each
	object  objectContext
	params  *modelState // models instead of those of the baseline, or nil
}

// pair is an object of the snapshot and its index in the baseline, or -1.
type pair struct {
	object snapshot.Object
	base   int32
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
func (pc *payloadCodec) begin(mask uint32, get func(lag int) *set) {
	pc.refs.choose(mask, get)
	pc.refs.index()
	pc.refs.bound(pc.schema)
}

// copyState copies the model state of the baseline.
func (pc *payloadCodec) copyState() {
	pc.state.copyFrom(cmp.Or(pc.params, pc.from))
	n := pc.refs.base.len()
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

// objects codes the list of objects.
func (pc *payloadCodec) objects(pairs []pair, cur *set) []pair {
	base := pc.refs.base
	pairs = match(pairs[:0], base, cur)
	kept := 0
	for _, p := range pairs {
		if p.base >= 0 {
			kept++
		}
	}
	gone, born := kept < base.len(), len(pairs)-kept
	if pc.Bit(&pc.state.removed[0], gone) {
		pc.codeRemoved(pairs)
	}
	pc.Uint(&pc.state.added, addedLevel, uint64(born))
	pc.sameSet = !gone && born == 0
	pc.codeAdded(pairs)
	return pairs
}

func match(pairs []pair, base, cur *set) []pair {
	k := 0
	for _, o := range cur.objects {
		pairs = append(pairs, pair{o, base.follow(&k, o)})
	}
	return pairs
}

func (pc *payloadCodec) codeRemoved(pairs []pair) {
	k := 0
	for i, o := range pc.refs.base.objects {
		for k < len(pairs) && pairs[k].object.ID < o.ID {
			k++
		}
		kept := k < len(pairs) && pairs[k].base == int32(i)
		pc.Bit(&pc.state.removed[1], !kept)
	}
}

// codeAdded codes the objects that are not in the baseline, each id relative to the previous one.
func (pc *payloadCodec) codeAdded(pairs []pair) {
	before := int64(-1)
	for _, p := range pairs {
		if p.base >= 0 {
			continue
		}
		id := int64(p.object.ID)
		pc.Uint(&pc.state.gap, gapLevel, uint64(id-before-1))
		pc.Raw(uint64(p.object.Generation), 8)
		before = id
	}
}

// rows codes the components of all objects, those at rest last, when the others are known.
func (pc *payloadCodec) rows(pairs []pair, cur *set) {
	pc.nearby, pc.resting, pc.changes = pc.nearby[:0], pc.resting[:0], 0
	pc.moving.reset()
	pc.initGround()
	for i, p := range pairs {
		switch {
		case p.base < 0:
			pc.codeAbsolute(cur.row(i))
		case pc.isResting(int(p.base)):
			pc.resting = append(pc.resting, int32(i))
		default:
			pc.load(int(p.base))
			pc.code(cur.row(i))
		}
	}
	pc.codeResting(pairs, cur)
}

// codeAbsolute codes an object that is not in the baseline.
func (pc *payloadCodec) codeAbsolute(row []int32) {
	for i := range pc.schema.fields {
		f := &pc.schema.fields[i]
		cur := row[pc.schema.at[i] : pc.schema.at[i]+f.N]
		for k, v := range cur {
			lo, hi := bounds(f, k)
			pc.Uniform(v, lo, hi)
		}
	}
}

// mask codes which sets before the baseline are known.
func (pc *payloadCodec) mask(known uint32) (mask uint32) {
	for i := range maxLag {
		if pc.Bit(&pc.state.known, known>>i&1 != 0) {
			mask |= 1 << i
		}
	}
	return mask
}

// updateObjects reorders the state of single objects from the baseline's to the coded ones.
func (pc *payloadCodec) updateObjects(pairs []pair) {
	if pc.sameSet {
		return
	}
	to, old := resize(pc.spare, len(pairs)), pc.state.rested
	for i, p := range pairs {
		to[i] = 0
		if p.base >= 0 {
			to[i] = old[p.base]
		}
	}
	pc.state.rested, pc.spare = to, old
	n, from := len(pc.schema.fields), len(pc.refs.base.objects)
	to = resize(pc.spare, n*len(pairs))
	for f := range n {
		for i, p := range pairs {
			v := int16(0)
			if p.base >= 0 {
				v = pc.state.last[f*from+int(p.base)]
			}
			to[f*len(pairs)+i] = v
		}
	}
	pc.state.last, pc.spare = to, pc.state.last
}
