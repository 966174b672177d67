package snapshot

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

// maxNeighbors is the number of previously coded objects among which the nearest is searched.
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

// velocity sets the velocities of component k.
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
