package statesync

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/fnv"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

const (
	// maxTick is the maximum magnitude of a tick. Differences of ticks cannot overflow.
	maxTick = 1 << 53
	// maxJump is the maximum difference of a tick from the expected one, except in keyframes.
	maxJump = 1 << 30
	// checkInterval is the number of packets per divergence check.
	checkInterval = 64
	// adaptLimit is the number of decisions after which probabilities adapt at a constant rate. A
	// lower limit costs bits for objects at rest, a higher limit for moving objects.
	adaptLimit = 45
)

func validTick(tick int64) bool { return tick >= -maxTick && tick <= maxTick }

// payloadCodec encodes or decodes the coded part of a packet. The same code does both, see
// [rangecoder.Coder]: a sender passes values to be written, and a receiver receives the values that
// were read.
type payloadCodec struct {
	rangecoder.Coder
	plan           *plan
	pool           *pool      // at the receiver: unused records
	sent           *sentStore // at the sender: baselines and packets
	out            *packet    // coded packet
	keyframe       bool       // the coded packet has no baselines
	view           view
	base           *packet   // newest packet of the view
	bases          []update  // baselines by ascending id
	records        []*record // at the receiver: records of bases
	object         objectContext
	viewerPosition [3]int64
	hasViewer      bool   // viewerPosition is known
	older          []byte // inputs of the previous tick, while inputs are coded
}

func (pc *payloadCodec) init(p *plan, decoding bool) {
	pc.Coder = rangecoder.NewCoder(adaptLimit, decoding)
	pc.plan = p
	pc.object.init(p)
}

// begin copies the models of the base packet, or prior for a keyframe, to the coded packet.
func (pc *payloadCodec) begin(prior *modelState) {
	pc.Bad, pc.hasViewer = false, false
	if !pc.keyframe {
		prior = pc.base.state
	}
	pc.out.state.copyFrom(prior)
}

// codeRecent codes which of the reorderLimit-1 packets before the base packet were decoded. Bit i
// is for the packet i+1 before it.
func (pc *payloadCodec) codeRecent(recent uint32) (got uint32) {
	s, before := pc.out.state, 1
	for i := range reorderLimit - 1 {
		b := pc.Bit(&s.held[before], recent>>i&1 != 0)
		before = 0
		if b {
			got |= 1 << i
			before = 1
		}
	}
	return got
}

// codeTick codes the tick as the difference from the expected one.
func (pc *payloadCodec) codeTick() bool {
	if pc.keyframe {
		return true
	}
	s, p := pc.out.state, int64(pc.out.seq-pc.base.seq)
	expect := pc.base.tick + p*s.pace
	pc.out.tick = expect + pc.rare(rareTick, pc.out.tick-expect)
	s.pace = fixed.Clamp((pc.out.tick-pc.base.tick)/p, 0, 1<<20)
	return validTick(pc.out.tick)
}

// checkHash codes the hash of the divergence check if due, and reports whether both ends agree.
func (pc *payloadCodec) checkHash() bool {
	if pc.keyframe || pc.out.seq%checkInterval != 0 {
		return true
	}
	h := uint64(pc.hash())
	return pc.Raw(h, 16) == h
}

func (pc *payloadCodec) codeViewerID(id uint16, has bool) (uint16, bool) {
	s := pc.out.state
	if !pc.Bit(&s.viewer[0], has) {
		return 0, false
	}
	if !pc.Bit(&s.viewer[1], id == s.view) {
		s.view = uint16(pc.Raw(uint64(id), 16))
	}
	return s.view, true
}

// codeMember codes whether an object that has a baseline is updated.
func (pc *payloadCodec) codeMember(base *update, is bool) bool {
	return pc.Bit(&pc.out.state.member[pc.memberContext(base)], is)
}

// memberContext returns the context of codeMember.
func (pc *payloadCodec) memberContext(base *update) uint8 {
	ctx := pc.age(base.seq)
	if base.rests {
		ctx += ageContexts
	}
	return ctx
}

// omit encodes that the objects of bases are not updated. It skips the viewer object.
func (pc *payloadCodec) omit(bases []update, viewer int) {
	for len(bases) > 0 {
		var contexts [64]uint8
		n, of := 0, bases[:min(len(bases), len(contexts))]
		for i := range of {
			contexts[n&63] = pc.memberContext(&of[i])
			if int(of[i].object.ID) != viewer {
				n++
			}
		}
		pc.Falses(pc.out.state.member[:], contexts[:n])
		bases = bases[len(of):]
	}
}

// age returns a context for the age of packet seq, in packets: its length in bits.
func (pc *payloadCodec) age(seq uint32) uint8 {
	return ages[min(uint32(pc.view.newest)-seq, uint32(len(ages)-1))]
}

// ages are the lengths of numbers in bits, up to the first that is ageContexts-1.
var ages = func() (a [1<<(ageContexts-2) + 1]uint8) {
	for i := range a {
		a[i] = uint8(bits.Len(uint(i)))
	}
	return a
}()

// codeNewID codes the id of an object without a baseline as the difference from the previous one.
func (pc *payloadCodec) codeNewID(id, before int64) int64 {
	return before + 1 + pc.rare(rareNewID, id-before-1)
}

func (pc *payloadCodec) members() []update {
	if pc.keyframe {
		return nil
	}
	return pc.bases
}

// find returns the index of the baseline of an object among the members, or -1.
func (pc *payloadCodec) find(id uint16) int32 {
	at, ok := slices.BinarySearchFunc(pc.members(), id, compareID)
	if !ok {
		return -1
	}
	return int32(at)
}

// baseline returns the baseline with index at. At the sender, it is valid until the next call.
func (pc *payloadCodec) baseline(at int32) *record {
	if pc.sent == nil {
		return pc.records[at]
	}
	pc.sent.load(at, &pc.object.loaded)
	return &pc.object.loaded
}

// unpack returns the row of the baseline with index at, valid until the next update is coded.
func (pc *payloadCodec) unpack(at int32) []int32 {
	pc.plan.packing.Unpack(pc.object.was, pc.plan.wordsOf(pc.baseline(at)))
	return pc.object.was
}

func (pc *payloadCodec) setViewerPosition(row []int32) {
	pc.viewerPosition, pc.hasViewer = pc.position(row), pc.plan.anchor >= 0
}

// newRecord adds a record to the coded packet. At the sender, it is valid until the next call.
func (pc *payloadCodec) newRecord(id uint16) *record {
	if pc.sent != nil {
		pc.sent.add(pc.out, id, &pc.object.added)
		return &pc.object.added
	}
	r := pc.pool.take(pc.plan)
	r.object.ID, r.seq, r.tick = id, uint32(pc.out.seq), uint32(pc.out.tick)
	pc.out.updates = append(pc.out.updates, r)
	return r
}

// rare codes a number that is 0 most of the time. of selects its model, such as rareTick.
func (pc *payloadCodec) rare(of int, v int64) int64 {
	if !pc.Bit(&pc.out.state.rare[of], v != 0) {
		return 0
	}
	return pc.number(pc.plan.rare[of], v)
}

// objectContext holds the values that the codec computes while it codes the fields of an object.
type objectContext struct {
	to                *record
	learned           []uint64 // residuals of the baseline
	missed            []uint64 // residuals of to
	trends, newTrends []uint64
	now, was          []int32 // rows of to and of the baseline; now is not written by an encoder
	decoded           []int32 // memory of now in a decoder
	elapsed           int64   // ticks since the baseline
	scales            scaleContext
	misses            []int64 // logarithms of the fields' residuals
	loaded, added     record  // scratch of a sender
}

func (o *objectContext) init(p *plan) {
	o.decoded, o.was, o.misses = make([]int32, p.ints), make([]int32, p.ints), make([]int64, len(p.fields))
}

// A record stores the logarithm of a field's residual in units of 1/8: missShift converts from Q8.
const missShift = 5

// miss returns the logarithm of the residual of a field in the baseline, Q8.
func (o *objectContext) miss(field int) int64 {
	return int64(o.learned[field/8]>>(8*(field&7))&255) << missShift
}

// setMissed stores the residual of a field.
func (o *objectContext) setMissed(field int) {
	v := fixed.Log2(o.scales.missed)
	o.misses[field] = v
	m, at := &o.missed[field/8], 8*(field&7)
	*m = *m&^(255<<at) | uint64(fixed.Clamp(v>>missShift, 0, 255))<<at
}

func (pc *payloadCodec) position(row []int32) (at [3]int64) {
	if pc.plan.anchor < 0 {
		return at
	}
	f := &pc.plan.fields[pc.plan.anchor]
	for k := range f.N {
		at[k] = int64(row[f.at+k])
	}
	return at
}

// codeInputs codes the inputs of ticks. The first tick is coded against the newest inputs of the
// base packet, each other tick against the tick before.
func (pc *payloadCodec) codeInputs(l *inputLog) bool {
	s, o := pc.out.state, pc.out
	pc.older = pc.older[:0]
	if !pc.keyframe {
		pc.older = append(pc.older, pc.base.inputs...)
	}
	expect := int64(1)
	if !pc.keyframe {
		expect = pc.base.to - pc.base.from
	}
	n := expect + pc.rare(rareTicks, o.to-o.from-expect)
	if n < 0 || n > MaxTicks {
		return false
	}
	if n > 0 {
		behind := pc.rare(rareBehind, o.tick+1-o.to)
		o.to = o.tick + 1 - behind
		o.from = o.to - n
	}
	for t := o.from; t < o.from+n; t++ {
		if pc.Decoding {
			l.open(t)
		}
		slot := l.slot(t)
		slot.known = pc.Bit(&s.input[0], slot.known)
		switch {
		case !slot.known:
		case pc.Bit(&s.input[1], slices.Equal(slot.flat, pc.older)):
			slot.flat = append(slot.flat[:0], pc.older...)
		case !pc.flat(slot):
			return false
		default:
			pc.older = append(pc.older[:0], slot.flat...)
		}
	}
	o.inputs = append(o.inputs[:0], pc.older...)
	return true
}

// flat codes the inputs of a tick against pc.older. It reports false if they are invalid.
func (pc *payloadCodec) flat(slot *tickSlot) bool {
	s := pc.out.state
	size, n := len(slot.flat), len(pc.older)
	if !pc.Bit(&s.input[2], size == n) {
		coded := pc.rare(rareBytes, int64(size))
		if coded < 0 || coded > maxTickBytes {
			return false
		}
		n = int(coded)
	}
	differed := 0
	for i := range n {
		was, is := byte(0), byte(0)
		if i < len(pc.older) {
			was = pc.older[i]
		}
		if !pc.Decoding {
			is = slot.flat[i]
		}
		if is, differed = pc.codeByte(&s.inputs, differed, is, was); pc.Decoding {
			slot.flat = append(slot.flat, is)
		}
	}
	return !pc.Decoding || wellFormed(slot.flat)
}

// hash returns the hash of models and baselines for the divergence check.
func (pc *payloadCodec) hash() uint16 {
	h, s := fnv.Offset, pc.out.state
	add := func(x int64) { h = h.Add(uint64(x)); h ^= h >> 29 }
	for i := range s.fields {
		for _, v := range s.fields[i].bias {
			add(int64(v))
		}
	}
	for i := range s.member {
		add(int64(s.member[i].P)<<16 | int64(s.same[i/ageContexts][i%ageContexts].P))
	}
	for i := range pc.bases {
		r := pc.baseline(int32(i))
		add(int64(r.object.ID)<<8 | int64(r.object.Generation))
		for _, x := range pc.plan.wordsOf(r) {
			add(int64(x))
		}
	}
	return uint16(h >> 48)
}

// codeMotion codes a field of numbers or angles, predicted from the baseline and velocities.
func (pc *payloadCodec) codeMotion(i int, o *objectContext) {
	f := &pc.plan.fields[i]
	cur, was := o.now[f.at:f.at+f.N], o.was[f.at:f.at+f.N]
	var move [3]int64 // predicted change, Q4
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	switch {
	case f.by >= 0:
		v := pc.plan.fields[f.by].at
		for k := range cur {
			then, is := int64(o.was[v+k])*f.per, int64(o.now[v+k])*f.per
			move[k] = clampTerm(((then+is)*o.elapsed>>1 + is - then) >> 12)
			speed += fixed.Abs(is) * o.elapsed >> 12
			unsteady += fixed.Abs(is-then) * o.elapsed >> 12
		}
		velocity = o.misses[f.by]
	case f.trend < 0:
		slows := min(o.elapsed, maxSlowing) * slowing
		for k := range cur {
			move[k] = -int64(was[k]) * slows >> 8
			speed += fixed.Abs(int64(was[k])) * 16
		}
	default:
		for k := range cur {
			move[k] = clampTerm(int64(o.trends[f.trend+k]) * o.elapsed >> 5)
			unsteady += fixed.Abs(move[k])
		}
	}
	c := &o.scales
	c.init(f, &pc.out.state.fields[i], o.elapsed, fixed.Log2(unsteady), fixed.Log2(speed), o.miss(i), velocity)
	for k := range cur {
		guess := f.clampPrediction(int64(was[k])*16 + move[k])
		v := (guess + 8) >> 4
		d := pc.number(c.level(k), f.wrapDifference(int64(cur[k])-v))
		if pc.Decoding {
			cur[k] = pc.addDifference(f, v, d)
		}
		if c.learn(k, (v+d)*16-guess); f.trend >= 0 {
			o.newTrends[f.trend+k] = uint64(fixed.Clamp(f.wrapDifference(int64(cur[k])-int64(was[k]))*256/o.elapsed, -1<<30, 1<<30))
		}
	}
	o.setMissed(i)
}

func (pc *payloadCodec) addDifference(f *field, v, d int64) int32 {
	if f.turn > 0 {
		pc.Bad = pc.Bad || fixed.Wrap(d, f.turn) != d
		return int32(int64(f.Lo) + fixed.Mod(v+d-int64(f.Lo), f.turn))
	}
	return pc.Check(v+d, f.Lo, f.Hi)
}

// codeQuat codes an orientation, predicted from the baseline and its angular velocity.
func (pc *payloadCodec) codeQuat(i int, o *objectContext) {
	s, f := pc.out.state, &pc.plan.fields[i]
	cur, gr := o.now[f.at:f.at+f.N], &f.grain
	var q quat.Fixed
	gr.Unpack(&q, o.was[f.at:f.at+f.N])
	unsteady, speed, velocity := int64(0), int64(0), int64(0)
	if f.by >= 0 {
		v := pc.plan.fields[f.by].at
		var turn [3]int64
		for k := range turn {
			then, is := int64(o.was[v+k])*f.per, int64(o.now[v+k])*f.per
			turn[k] = clampAngle(((then+is)*o.elapsed>>1 + is - then) >> perShift)
			speed += min(fixed.Abs(is)*o.elapsed>>perShift, maxAngle)
			unsteady += min(fixed.Abs(is-then)*o.elapsed>>perShift, maxAngle)
		}
		was := q
		q.ExpAny(turn)
		q.Mul(&q, &was)
		velocity = o.misses[f.by]
	}
	unsteady, speed = gr.Size(unsteady), gr.Size(speed)
	learned := o.miss(i)
	largest, other := s.largest.Code(&pc.Coder, int(cur[0]), &q, gr, int(fixed.Clamp((unsteady+learned)>>9, 0, quat.Doubts-1)))
	pc.Store(&cur[0], int32(largest))
	if q[largest] < 0 {
		q[0], q[1], q[2], q[3] = -q[0], -q[1], -q[2], -q[3]
	}
	c := &o.scales
	c.init(f, &s.fields[i], o.elapsed, unsteady, speed, learned, velocity)
	if other {
		for k := range c.common {
			c.common[k] += c.to[k].other * logBias
		}
	}
	for e, k := 0, 0; e < 4; e++ {
		if e == largest {
			continue
		}
		guess := fixed.Clamp(gr.Pack(q[e]), int64(f.Lo)*16, int64(f.Hi)*16)
		v := (guess + 8) >> 4
		d := pc.number(c.level(k), int64(cur[k+1])-v)
		if pc.Decoding {
			cur[k+1] = pc.Check(v+d, f.Lo, f.Hi)
		}
		c.learn(k, (v+d)*16-guess)
		k++
	}
	o.setMissed(i)
}

// number codes a number of at most 32 bits.
func (pc *payloadCodec) number(level int, v int64) int64 {
	t := &tables[level]
	if !pc.Decoding {
		size := uint64(fixed.Abs(v))
		s, rest := class(size)
		pc.Enc.SymbolRaw(t, s, size<<1|uint64(v)>>63, rest)
		return v
	}
	s := pc.Dec.Symbol(t)
	if s == 0 {
		return 0
	}
	size, rest := lowest(s)
	x := pc.Dec.Raw(rest + 1)
	v = int64(size | x>>1)
	if x&1 != 0 {
		return -v
	}
	return v
}
