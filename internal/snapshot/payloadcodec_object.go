package snapshot

import (
	"math/bits"
	"slices"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/lms"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// load loads the context of an object that is not at rest. index and base are its index and row in
// the baseline.
func (pc *payloadCodec) load(index int, base []int32) {
	o := &pc.object
	o.index, o.base = index, base
	o.moved, o.speedContext, o.resting = 0, 0, false
	if pc.refs.step == 0 {
		return // without references its motion is unknown
	}
	pc.references()
	for i, k := range [...]int{0, 1, refs - 1} {
		if pc.schema.differ(o.base, o.row[k]) {
			o.moved |= 1 << i
		}
	}
	if pc.schema.anchor < 0 {
		return
	}
	at, far := pc.schema.at[pc.schema.anchor], int64(0)
	for k := at; k < at+pc.schema.fields[pc.schema.anchor].N; k++ {
		far += fixed.Abs(int64(o.base[k]) - int64(o.row[refs-1][k]))
	}
	o.speedContext = min(bits.Len64(uint64(far))/2, 3)
}

// references loads the object's rows in the references. Without references it uses the row in the
// baseline.
func (pc *payloadCodec) references() {
	o := &pc.object
	if o.usual = pc.refs.step > 0; o.usual {
		for i := range o.row {
			o.row[i], o.lag[i] = pc.refs.row(i, o.index)
			o.usual = o.usual && o.lag[i] == int64(References[i])*pc.refs.step
		}
	} else {
		o.row, o.lag = [refs][]int32{o.base, o.base, o.base, o.base}, [refs]int64{}
	}
	if same := o.usual || pc.refs.step == 0; !same || !pc.scaled {
		pc.loadSpans()
		pc.scaled = same
	}
}

// code codes an object that is not at rest.
func (pc *payloadCodec) code(row []int32) {
	o := &pc.object
	if pc.Decoding && !pc.sameSet {
		copy(row, o.base)
	}
	o.flag = pc.schema.flagOf(o.base)
	moved := false
	pc.changes <<= 1
	if len(pc.schema.order) > 0 {
		ctx := (pc.changes>>1&3)<<6 | o.speedContext<<4 | o.moved<<1 | o.flag
		if moved = pc.bit(pc.schema.layout.changed+ctx, !pc.Decoding && pc.schema.differ(row, o.base)); moved {
			pc.changes |= 1
		}
	}
	pc.codeKept(row, moved)
	if !moved {
		return
	}
	if pc.refs.step == 0 {
		pc.references()
	}
	pc.codeMoved(row)
}

// codeKept codes the fields that are not predicted: flags and byte strings.
func (pc *payloadCodec) codeKept(row []int32, moved bool) {
	pc.codeFlags(row, moved)
	if len(pc.schema.strings) > 0 {
		pc.codeStrings(row, moved)
	}
}

func (pc *payloadCodec) codeFlags(row []int32, changed bool) {
	o := &pc.object
	for n, i := range pc.schema.flags {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		v := o.base[at]
		ctx := o.moved
		if changed {
			ctx |= 8
		}
		if v != f.Lo {
			ctx |= 16
		}
		if !o.resting && pc.refs.step > 0 {
			if o.row[0][at] != v {
				ctx |= 32
			}
			if o.row[refs-1][at] != v {
				ctx |= 64
			}
		}
		if o.resting && !changed {
			ctx = flagContexts + ctx>>4&1
		}
		switch {
		case !pc.bit(pc.schema.layout.flags[n]+ctx, row[at] != v):
		case int64(f.Hi)-int64(f.Lo) == 1:
			pc.Store(&row[at], f.Lo+f.Hi-v)
		default:
			pc.Store(&row[at], pc.Uniform(row[at], f.Lo, f.Hi))
		}
	}
}

// codeMoved codes the predicted fields of an object that changed.
func (pc *payloadCodec) codeMoved(row []int32) {
	o := &pc.object
	o.miss, o.missed, o.jerk, o.jerk1, o.speed = [3]int64{}, 0, 0, 0, 0
	o.logJerk, o.logJerk1, o.logSpeed = logZero, logZero, logZero
	pc.findNeighbor()
	pc.classify()
	pc.loadOrientations()
	left, some := len(pc.schema.order), false
	var counts [schema.ClassBytes]int // number of fields coded so far, by class
	pc.nearby = append(pc.nearby, neighbor{})
	here := &pc.nearby[len(pc.nearby)-1]
	var now [3]int64
	for _, i := range pc.schema.order {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		left--
		cur, base := row[at:at+f.N], o.base[at:at+f.N]
		differs := true
		if some || left > 0 {
			ctx := o.moved | o.speedContext<<4
			if some {
				ctx |= 8
			}
			differs = pc.bit(pc.schema.layout.same[i]+ctx, !slices.Equal(cur, base))
		}
		some = some || differs
		n := counts[f.Class]
		counts[f.Class]++
		if differs {
			switch f.Class {
			case schema.ClassNumber:
				pc.codePosition(i, n, cur)
			case schema.ClassAngle:
				pc.codeAngle(i, pc.schema.layout.angles[n], cur)
			default:
				here.turn += pc.codeQuat(i, n, cur)
			}
		}
		if i == pc.schema.anchor {
			for k := range cur {
				here.position[k], now[k] = int64(base[k]), int64(cur[k])
			}
			here.miss[0], here.miss[1], here.miss[2], here.positionError = o.miss[0], o.miss[1], o.miss[2], o.missed
		}
	}
	pc.moving.add(now[0], now[1], now[2])
}

func putBytes(c []int32, b []byte) {
	clear(c)
	c[0] = int32(len(b))
	for i, v := range b {
		rangecoder.SetByte(c, i, v)
	}
}

func appendBytes(dst []byte, c []int32) []byte {
	for i := range int(c[0]) {
		dst = append(dst, rangecoder.Byte(c, i))
	}
	return dst
}

// codeStrings codes each byte string of an object in the baseline: kept or replaced.
func (pc *payloadCodec) codeStrings(row []int32, changed bool) {
	ctx := 0
	if changed {
		ctx = 1
	}
	for n, i := range pc.schema.strings {
		f, at := &pc.schema.fields[i], pc.schema.at[i]
		c, base, m := row[at:at+f.N], pc.object.base[at:at+f.N], pc.schema.layout.strings[n]
		if pc.bit(m+ctx, !slices.Equal(c, base)) {
			pc.codeBytes(f, m, c, base)
		}
	}
}

// codeBytes codes a byte string into c. m is the offset of its contexts. A byte that equals the
// byte of base at the same place takes few bits.
func (pc *payloadCodec) codeBytes(f *Field, m int, c, base []int32) {
	n := base[0]
	if pc.bit(m+2, c[0] != n) {
		n = pc.Uniform(c[0], f.Lo, f.Hi)
	}
	pc.StoreLength(c, n)
	last := 1
	for i := range int(n) {
		b := rangecoder.Byte(c, i)
		if i < int(base[0]) {
			old := rangecoder.Byte(base, i)
			if pc.bit(m+3+last, b == old) {
				last = 1
				pc.StoreByte(c, i, old)
				continue
			}
			last = 0
		}
		pc.StoreByte(c, i, byte(pc.Raw(uint64(b), 8)))
	}
}

// objectContext holds values of the coded object. Positions, velocities and errors are in 1/16 of a
// step (Q4). The unit of time is the distance from the baseline to the coded snapshot.
type objectContext struct {
	index          int // index of the object in the baseline
	base           []int32
	row            [refs][]int32
	lag            [refs]int64
	moved          int // bits 0 to 2: the baseline differs from the first, second and last reference
	class          int
	speedContext   int   // distance moved since the last reference, 0 to 3
	jerk           int64 // change of velocity over all references
	jerk1          int64 // change of velocity over the newest references
	speed          int64
	logJerk        int64
	logJerk1       int64
	logSpeed       int64
	scales         [spans]int64 // factors from a difference over each span to a velocity, Q4 shifted by partShift
	usual          bool         // lag has the ages of References: no set lacks the object
	speeds         [3]velocities
	near           *neighbor
	gap            int64    // log2 of the distance to near
	miss           [3]int64 // errors of the predicted position
	missed         int64    // sum of the magnitudes of miss
	flag           int
	pose           pose
	turned         int64 // error of the predicted orientation
	velocityChange [3]int64
	drift          [3]int64 // velocity of the position over span fromThird
	resting        bool     // the object is at rest
}

// maxNeighbors is the number of previously coded objects that findNeighbor searches.
const maxNeighbors = 16

func (pc *payloadCodec) findNeighbor() {
	o := &pc.object
	o.near = nil
	if pc.schema.anchor < 0 || len(pc.nearby) == 0 {
		return
	}
	x, y, z := pc.schema.position(o.base)
	least := int64(1) << 62
	last := pc.nearby[max(0, len(pc.nearby)-maxNeighbors):]
	for i := range last {
		if d := quarterSquare(&last[i].position, x, y, z); d < least {
			least, o.near = d, &last[i]
		}
	}
	o.gap = fixed.Log2(least<<5) / 2
}

// loadSpans loads the factors from differences over the spans to velocities. If two references are
// the same, the span ends at the baseline.
func (pc *payloadCodec) loadSpans() {
	o := &pc.object
	for i, e := range ends {
		lag := o.lag[e[1]]
		if e[0] >= 0 && o.lag[e[0]] != lag {
			lag -= o.lag[e[0]]
		}
		o.scales[i] = 16 * pc.refs.distance * parts[lag&63]
	}
}

// velocity sets v to the velocities of component k.
func (o *objectContext) velocity(v *velocities, k int) {
	base := int64(o.base[k])
	first, second, third, last := int64(o.row[0][k]), int64(o.row[1][k]), int64(o.row[2][k]), int64(o.row[3][k])
	c := &o.scales
	v[fromFirst] = (base - first) * c[fromFirst] >> partShift
	v[fromSecond] = (base - second) * c[fromSecond] >> partShift
	v[fromThird] = (base - third) * c[fromThird] >> partShift
	v[fromLast] = (base - last) * c[fromLast] >> partShift
	newer1, newer2, newer3 := first, second, third
	if !o.usual {
		if o.lag[0] == o.lag[1] {
			newer1 = base
		}
		if o.lag[1] == o.lag[2] {
			newer2 = base
		}
		if o.lag[2] == o.lag[3] {
			newer3 = base
		}
	}
	v[firstFromSecond] = (newer1 - second) * c[firstFromSecond] >> partShift
	v[secondFromThird] = (newer2 - third) * c[secondFromThird] >> partShift
	v[thirdFromLast] = (newer3 - last) * c[thirdFromLast] >> partShift
}

// logZero is the logarithm of 0.
var logZero = fixed.Log2(0)

// classify sets the class: 0 by default, 1 to 5 from steady to unsteady motion, 3 at rest.
func (pc *payloadCodec) classify() {
	o := &pc.object
	o.class, o.drift, o.velocityChange = 0, [3]int64{}, [3]int64{}
	if o.moved == 0 {
		o.class = 3
	}
	if pc.schema.anchor < 0 {
		return
	}
	at, n := pc.schema.at[pc.schema.anchor], pc.schema.fields[pc.schema.anchor].N
	pc.measureMotion(at, n)
	for k := range n {
		o.drift[k] = o.speeds[k][fromThird]
		o.velocityChange[k] = o.speeds[k][fromFirst] - o.drift[k]
	}
	if o.moved != 7 {
		return
	}
	const small, large = 5 * 16, 20 * 16
	switch {
	case o.jerk1 >= large:
		o.class = 5
	case o.jerk >= large:
		o.class = 4
	case o.jerk < small && o.jerk1 <= small:
		o.class = 1
	default:
		o.class = 2
	}
}

func (pc *payloadCodec) measureMotion(at, n int) {
	o, part := &pc.object, parts[pc.refs.distance&63]
	o.jerk, o.jerk1, o.speed = 0, 0, 0
	for k := range n {
		v := &o.speeds[k]
		o.velocity(v, at+k)
		o.jerk += fixed.Abs(v[fromSecond]-2*v[secondFromThird]+v[thirdFromLast]) * 2
		o.jerk1 += fixed.Abs(v[fromFirst] - 2*v[firstFromSecond] + v[secondFromThird])
		o.speed += fixed.Abs(v[fromSecond])
	}
	o.jerk, o.jerk1 = o.jerk*part>>partShift, o.jerk1*part>>partShift
	o.logJerk, o.logJerk1, o.logSpeed = fixed.Log2(o.jerk), fixed.Log2(o.jerk1), fixed.Log2(o.speed)
}

const partShift = 16

// parts are 1/i in Q16. A multiplication is faster than a division.
var parts = func() (t [64]int64) {
	for i := int64(1); i < int64(len(t)); i++ {
		t[i] = (1<<partShift + i/2) / i
	}
	return t
}()

// positionTerms are the inputs of the prediction of one component of a position.
type positionTerms struct {
	x      [lms.Terms]int64
	by     *lms.Weights
	g      int64 // velocity
	out    int64 // depth below the ground of the extrapolated position
	rested bool  // the object was at rest
}

// Inputs of the predicted scale of a position's error. They are logarithms, except for posBias,
// posRested and posAlone, which are lms.Bias or 0.
const (
	posJerk     = iota // change of velocity over all references
	posJerk1           // change of velocity over the newest references
	posUnsteady        // range of the velocities over the references
	posSpeed
	posMissed  // error of the previous components
	posTurned  // error of the orientation
	_          // no input has this index
	posBias    // always
	posRested  // the object was at rest
	posAlone   // there is no neighbor
	posGap     // distance to the neighbor
	posFar     // predicted change of this component
	posOut     // depth below the ground
	posNear    // error of the neighbor's position
	posForced  // maximum of posTurned and posOut
	posTurned2 // square of posTurned, for a nonlinear effect: small errors carry no information
)

// codePosition codes a field of numbers into cur. n is its index among the fields of class
// ClassNumber.
func (pc *payloadCodec) codePosition(field, n int, cur []int32) {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	m := &pc.model.motion[n]
	anchor, ground := field == pc.schema.anchor, o.class
	if !anchor {
		pc.measureMotion(at, f.N)
	} else if o.pose.ground >= 0 {
		ground += classes
	}
	acc := int64(0)
	for k := range f.N {
		acc += fixed.Abs(o.speeds[k][fromSecond] - o.speeds[k][fromLast])
	}
	turned := fixed.Log2(o.turned)
	y := [lms.Terms]int64{
		posJerk: o.logJerk, posJerk1: o.logJerk1, posUnsteady: fixed.Log2(acc), posSpeed: o.logSpeed,
		posTurned: turned, posTurned2: turned * turned >> 11, posBias: lms.Bias,
	}
	if o.near != nil {
		y[posNear], y[posGap] = fixed.Log2(o.near.positionError), o.gap
	} else {
		y[posAlone] = lms.Bias
	}
	probs := pc.schema.layout.numbers[n]
	var t positionTerms
	var miss [3]int64
	missed := int64(0)
	for k := range f.N {
		base := int64(o.base[at+k]) * 16
		pc.positionTerms(&t, m, k, base, anchor)
		copy(t.x[7:], miss[:k])
		guess := fixed.Clamp(base+t.by.Predict(&t.x), int64(f.Lo)*16, int64(f.Hi)*16)

		y[posMissed], y[posRested], y[posFar], y[posOut] = fixed.Log2(missed), 0, fixed.Log2(t.g), fixed.Log2(t.out)
		if t.rested {
			y[posRested] = lms.Bias
		}
		y[posForced] = max(turned, y[posOut])
		scale := m.scale[k][ground].Predict(&y)
		magnitude := level(scale)
		sign := k*9 + 3*rangecoder.Sign3(t.x[1]) + rangecoder.Sign3(t.g)
		if anchor {
			sign += 27 * pc.low(guess-pc.lowest[k], scale)
		}
		e := pc.predicted(probs+(k>>1|ground/classes<<1)*integerSize, magnitude, sign, guess, &cur[k], f.Lo, f.Hi)
		if pc.lesson != nil {
			pc.lesson.fit(t.by, t.x, e, scale, 16)
			pc.lesson.fitScale(&m.scale[k][ground], y, fixed.Log2(e)-scale)
		}
		miss[k] = e
		missed += fixed.Abs(e)
	}
	if anchor {
		o.miss, o.missed = miss, missed
	}
}

// positionTerms sets the inputs for component k. base is its value in the baseline, Q4.
func (pc *payloadCodec) positionTerms(t *positionTerms, m *motionWeights, k int, base int64, anchor bool) {
	o := &pc.object
	v := &o.speeds[k]
	g := v[fromThird]
	t.g, t.out, t.rested, t.by = g, 0, o.class == 3, &m.position[k][o.class]
	t.x = [lms.Terms]int64{}
	t.x[0], t.x[1], t.x[2], t.x[3], t.x[4] = g, v[fromFirst]-g, v[firstFromSecond]-g, g-v[thirdFromLast], 160
	if o.near != nil {
		t.x[5] = o.near.miss[k]
	}
	if !anchor {
		return
	}
	if t.out = max(0, pc.lowest[k]-base-g); o.pose.known {
		t.out = max(0, -pc.physics.size[k].above(&o.pose.now, k, base+g))
	}
	t.x[6] = t.out
	if o.pose.known && o.pose.ground >= 0 {
		pc.rollTerms(m, t, k, base)
	} else if t.out > 0 && !t.rested {
		t.by = &m.position[k][6]
	}
}

// low returns a context for the height above the ground, relative to the expected error.
func (pc *payloadCodec) low(above, scale int64) int {
	reach := int64(16) << fixed.Clamp(scale/fixed.LogOne+1, 0, 20)
	switch {
	case above < reach/4:
		return 2
	case above < reach:
		return 1
	}
	return 0
}

func (pc *payloadCodec) groundAxis(at, n int) int {
	o := &pc.object
	axis, least := -1, int64(0)
	for k := range n {
		s := &pc.physics.size[k]
		h := fixed.Abs(s.above(&o.pose.base, k, int64(o.base[at+k])*16))
		if h < minHalf+s.half>>4 && (axis < 0 || h < least) {
			axis, least = k, h
		}
	}
	return axis
}

// loadOrientations loads the object's rotations in the baseline and before it.
func (pc *payloadCodec) loadOrientations() {
	o, s := &pc.object, pc.schema
	o.pose.known, o.pose.ground, o.turned = s.orientation >= 0, -1, 0
	if !o.pose.known {
		return
	}
	g, at := &s.grains[0], s.at[s.orientation]
	g.Unpack(&o.pose.from, o.base[at:at+4])
	o.pose.base.Set(&o.pose.from)
	o.pose.now, o.pose.turn = o.pose.base, [3]int64{}
	if s.anchor >= 0 {
		o.pose.ground = pc.groundAxis(s.at[s.anchor], s.fields[s.anchor].N)
	}
	if o.pose.ground >= 0 {
		var before quat.Fixed
		g.Unpack(&before, o.row[2][at:at+4])
		o.pose.before.Set(&before)
	}
}

// groundClass maps the class of an object off the ground to its class on the ground.
var groundClass = [classes]int{0, 1, 2, 0, 3, 4, 4}

// rollTerms sets the inputs for component k of an object on the ground. Along the ground axis, the
// inputs are the current and the previous change of its extent, and its height. Across that axis,
// they are the movements of an object that rolls over a fixed corner: over the lowest corner of the
// baseline, its previous movement, and over the new lowest corner.
func (pc *payloadCodec) rollTerms(m *motionWeights, t *positionTerms, k int, base int64) {
	o, axis := &pc.object, pc.object.pose.ground
	p, s, back := &o.pose, &pc.physics.size[axis], int64(0)
	half := s.half
	if o.lag[2] > 0 {
		back = pc.refs.distance / o.lag[2]
	}
	for i := range p.turn {
		t.x[13+i] = p.turn[i] * half >> quat.Shift
	}
	if k == axis {
		e := p.base.Extent(k)
		t.by = &m.roll[0][groundClass[o.class]]
		t.x[10] = half * (p.now.Extent(k) - e) >> quat.Shift
		t.x[11] = half * (e - p.before.Extent(k)) >> quat.Shift * back
		t.x[12] = -s.above(&p.base, k, base)
		return
	}
	was, is := p.base.Corner(axis), p.now.Corner(axis)
	t.by = &m.roll[1+k&1][groundClass[o.class]]
	t.x[10] = -half * p.base.Displacement(&p.now, &was, k) >> quat.Shift
	t.x[11] = -half * p.before.Displacement(&p.base, &was, k) >> quat.Shift * back
	t.x[12] = -half * p.base.Displacement(&p.now, &is, k) >> quat.Shift
}

// Inputs of the predicted scale of an orientation's error. They are logarithms, except for
// turnBias, turnRested and turnOther, which are lms.Bias or 0.
const (
	turnJerk        = iota // change of the position's velocity over all references
	turnJerk1              // change of the position's velocity over the newest references
	turnUnsteady           // range of the angular velocities over the references
	turnSpeed              // angular speed
	turnMissed             // error of the previous components
	turnNear               // error of the neighbor's orientation
	_                      // no input has this index
	turnBias               // always
	turnRested             // the object was at rest
	turnOther              // the largest component differs from the predicted one
	turnPlaceSpeed         // speed of the position
	turnPlaceMissed        // error of the position, if it is coded first
	turnTurnJerk           // change of angular velocity over all references
	turnTurnJerk1          // change of angular velocity over the newest references
	turnFar                // predicted change of this component
)

// codeQuat codes an orientation into cur and returns the error of its prediction in Q4. n is its
// index among the fields of class ClassQuat.
func (pc *payloadCodec) codeQuat(field, n int, cur []int32) int64 {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	m, probs, gr := &pc.model.turns[n], pc.schema.layout.turns[n], &pc.schema.grains[n]
	base := &o.pose.from
	if field != pc.schema.orientation {
		base = new(quat.Fixed)
		gr.Unpack(base, o.base[at:at+4])
	}
	var v [refs][3]int64
	for i := range v {
		if o.lag[i] == 0 {
			continue
		}
		var q quat.Fixed
		gr.Unpack(&q, o.row[i][at:at+4])
		x, y, z := quat.Between(&q, base)
		by := pc.refs.distance * parts[o.lag[i]&63]
		v[i][0], v[i][1], v[i][2] = x*by>>partShift, y*by>>partShift, z*by>>partShift
	}
	class, unit := o.class, int64(128)
	if axis := o.pose.ground; axis >= 0 {
		class, unit = classes+class, quat.One*16/(pc.physics.size[axis].half+1)
	}
	var x [3][lms.Terms]int64
	var guess [3]int64
	var dis, ang, jerk, jerk1 int64
	for k := range x {
		g := v[2][k]
		x[k][0], x[k][1], x[k][2], x[k][3] = g, v[0][k]-g, v[1][k]-g, g-v[refs-1][k]
		for i := range o.drift {
			x[k][4+i], x[k][7+i] = o.drift[i]*unit>>4, o.velocityChange[i]*unit>>4
		}
		guess[k] = m.turn[k][class].Predict(&x[k])
		dis += fixed.Abs(v[1][k] - v[refs-1][k])
		ang += fixed.Abs(v[1][k])
		jerk += fixed.Abs(x[k][3])
		jerk1 += fixed.Abs(x[k][1])
	}
	var by, q, now quat.Fixed
	by.Exp(guess[0], guess[1], guess[2])
	q.Mul(&by, base)

	y := [lms.Terms]int64{
		turnJerk: o.logJerk, turnJerk1: o.logJerk1, turnUnsteady: gr.Size(dis), turnSpeed: gr.Size(ang),
		turnBias: lms.Bias, turnPlaceSpeed: o.logSpeed, turnPlaceMissed: fixed.Log2(o.missed),
		turnTurnJerk: gr.Size(jerk), turnTurnJerk1: gr.Size(jerk1),
	}
	if o.near != nil {
		y[turnNear] = fixed.Log2(o.near.turn)
	}
	if o.moved == 0 {
		y[turnRested] = lms.Bias
	}

	largest, hit := pc.codeLargest(probs, int(cur[0]), &q, gr, int(fixed.Clamp((y[turnUnsteady]+y[turnPlaceMissed])>>9, 0, quatDoubts-1)))
	pc.Store(&cur[0], int32(largest))
	if hit {
		y[turnOther] = lms.Bias
	}
	if q[largest] < 0 {
		q[0], q[1], q[2], q[3] = -q[0], -q[1], -q[2], -q[3]
	}
	missed, scales := int64(0), int64(0)
	for i, k := 0, 0; i < 4; i++ {
		if i == largest {
			continue
		}
		to := gr.Pack(q[i])
		p, far := fixed.Clamp(to, int64(f.Lo)*16, int64(f.Hi)*16), to-gr.Pack(base[i])
		y[turnMissed], y[turnFar] = fixed.Log2(missed), fixed.Log2(far)
		scale := m.scale[k][class].Predict(&y)
		e := pc.predicted(probs+largestSize+class/classes*integerSize, level(scale), k*9+rangecoder.Sign3(far), p, &cur[k+1], f.Lo, f.Hi)
		if pc.lesson != nil {
			pc.lesson.fitScale(&m.scale[k][class], y, fixed.Log2(e)-scale)
			scales += scale
		}
		missed += fixed.Abs(e)
		k++
	}
	gr.Unpack(&now, cur)
	var target [3]int64
	target[0], target[1], target[2] = quat.Between(base, &now)
	if field == pc.schema.orientation {
		o.pose.now.Set(&now)
		o.pose.turn, o.turned = target, missed
	}
	if pc.lesson != nil {
		for k := range x {
			pc.lesson.fit(&m.turn[k][class], x[k], target[k]-guess[k], scales/3, gr.Unit)
		}
	}
	return missed
}

// codeAngle codes a field of angles into cur. Each angle is predicted as unchanged or at constant
// angular velocity, whichever would have predicted the baseline better. m is the offset of its
// contexts.
func (pc *payloadCodec) codeAngle(field int, m int, cur []int32) {
	o, f, at := &pc.object, &pc.schema.fields[field], pc.schema.at[field]
	lo := int64(f.Lo)
	turn := int64(f.Hi) - lo + 1
	change := func(to, from int32, lag int64) int64 { // scaled to the coded distance
		if lag <= 0 {
			return 0
		}
		return fixed.Wrap(int64(to)-int64(from), turn) * pc.refs.distance / lag
	}
	for k := range cur {
		base := o.base[at+k]
		now := change(base, o.row[1][at+k], o.lag[1])
		before := change(o.row[1][at+k], o.row[2][at+k], o.lag[2]-o.lag[1])
		guess, miss := int64(base), fixed.Abs(now)
		if on := fixed.Abs(now - before); on < miss {
			guess, miss = guess+now, on
		}
		level, sign := level(fixed.Log2(miss*16)), k*9+3*rangecoder.Sign3(now)+rangecoder.Sign3(before)
		d := pc.integer(m, level, sign, fixed.Wrap(int64(cur[k])-guess, turn))
		pc.Bad = pc.Bad || d != fixed.Wrap(d, turn)
		pc.Store(&cur[k], int32(lo+fixed.Mod(guess+d-lo, turn)))
	}
}

// Numbers of contexts of the index of the largest component.
const (
	largestLevels = 40 // levels of the margin by which the predicted largest component exceeds the second
	quatDoubts    = 8  // levels of the uncertainty of the prediction
)

// codeLargest codes the index of the largest element, 0 to 3, of an orientation that is predicted
// to be q, and reports whether it differs from the index for q. at is the offset of its contexts;
// doubt is 0 to quatDoubts-1.
func (pc *payloadCodec) codeLargest(at, index int, q *quat.Fixed, g *quat.Quantizer, doubt int) (largest int, other bool) {
	first, second, margin := q.Largest(g)
	if !pc.bit(at+int(fixed.Clamp((margin+256)*2>>8, 0, largestLevels-1))*quatDoubts+doubt, index != first) {
		return first, false
	}
	at += largestLevels * quatDoubts
	if !pc.bit(at, index != second) {
		return second, true
	}
	low, high := quat.Others(first, second)
	if pc.bit(at+1, index == high) {
		return high, true
	}
	return low, true
}
