package snapshot

import (
	"cmp"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rangecoder"
)

// physics is what predictions know about a world: the size of its objects, its ground, and from how
// far objects disturb others. It is a part of each set. The server estimates it; clients decode it.
type physics struct {
	size     [3]size           // by axis
	contacts [modelCount]int64 // by model: log2 of the distance of contacts, 0 if unknown
}

// size is the size of objects and the position of the ground along one axis, Q4.
type size struct {
	floor int64 // position of objects that lie flat on the ground
	half  int64 // 0: unknown
}

const (
	unknownHalf = 4 * minHalf
	minHalf     = 16
	maxHalf     = 1 << 24

	unknownContact = 40 * fixed.LogOne
	maxContact     = 1<<14 - 1
	maxFloor       = 1 << 30
	floorBits      = 4 // of a floor, below one step
)

// changedProb is the constant probability that the physics differ from those of the baseline.
var changedProb = rangecoder.Prob{P: 1 << 9}

// codePhysics codes the physics of cur.
func (pc *payloadCodec) codePhysics(cur *Set) {
	base := &pc.refs.base.physics
	p := changedProb
	if pc.schema.anchor < 0 || !pc.Bit(&p, cur.physics != *base) {
		cur.physics = *base
		return
	}
	to := &cur.physics
	for k := range to.size {
		s, from := &to.size[k], &base.size[k]
		s.floor = pc.physicsNumber(s.floor, from.floor, maxFloor)
		s.half = pc.physicsNumber(s.half, from.half, maxHalf)
	}
	for i := range to.contacts {
		to.contacts[i] = pc.physicsNumber(to.contacts[i], base.contacts[i], maxContact)
	}
}

// physicsNumber codes v as its difference from another, both of a magnitude up to limit.
func (pc *payloadCodec) physicsNumber(v, from, limit int64) int64 {
	d := v - from
	u := pc.count(pc.schema.layout.physics, physicsLevel, uint64(d<<1^d>>63))
	v = from + (int64(u>>1) ^ -int64(u&1))
	pc.Bad = pc.Bad || fixed.Abs(v) > limit
	return fixed.Clamp(v, -limit, limit)
}

// loadPhysics loads the physics of cur. The ground of an unknown size is the lowest object.
func (pc *payloadCodec) loadPhysics(cur *Set) {
	pc.physics = cur.physics
	for k := range pc.physics.size {
		if s := &pc.physics.size[k]; s.half == 0 {
			s.half, s.floor = unknownHalf, pc.refs.low[k]<<floorBits
		}
	}
	pc.contactRange = cmp.Or(pc.physics.contacts[pc.refs.model()], unknownContact)
}

// above returns the height of the lowest corner above the ground along axis k at position at, Q4.
func (s *size) above(m *quat.Matrix, k int, at int64) int64 {
	return at - s.floor - s.half*(m.Extent(k)-quat.One)>>quat.Shift
}

// fitter estimates the physics of a world from how its objects move: it codes some snapshots, whose
// bytes nobody needs.
type fitter struct {
	world *World
	codec payloadCodec
	pairs []pair
	buf   []byte

	estimate physics
	count    [3]int64 // observations of each size
	adopted  physics
	due      uint64 // snapshot of the next adoption
}

// fitDistances are the distances to the baselines of what is observed, in turn.
var fitDistances = [...]int{2, 4, 6, 10, 13}

const (
	fitOften        = 64      // snapshots at the start, of which every second is observed; later every eighth
	minExtentChange = 1 << 12 // minimum change of extent that is an observation, Q16
	minObservations = 64
	maxAdopt        = 600
	trustedCount    = 256     // number of observations after which only objects near the ground count
	maxCount        = 1 << 12 // number of observations after which the learning rate is constant
)

func newFitter(w *World) *fitter {
	f := &fitter{world: w}
	for i := range f.estimate.contacts {
		f.estimate.contacts[i] = unknownContact
	}
	f.codec.init(w.schema, false)
	f.codec.fit = f
	return f
}

// observe learns from snapshot n, and returns the physics for the next one.
func (f *fitter) observe(n uint64) physics {
	distance := uint64(fitDistances[n/2%uint64(len(fitDistances))])
	if n < distance+maxLag || n%2 != 0 || n >= fitOften && n%8 != 0 || f.world.schema.anchor < 0 {
		return f.adopted
	}
	w, pc := f.world, &f.codec
	base := n - distance
	pc.refs.begin(w.set(base), int64(distance), 1)
	pc.refs.load(w.schema, func(lag int) *Set { return w.set(base - uint64(lag)) })
	cur := w.set(n)
	pc.begin(w.model.at(&pc.refs))
	pc.loadPhysics(cur)
	for k := range f.estimate.size {
		if s := &f.estimate.size[k]; f.count[k] == 0 {
			*s = size{pc.refs.low[k] << floorBits, unknownHalf}
		}
	}
	pc.Enc.Reset(f.buf[:0], 0)
	f.pairs, _ = pc.objects(f.pairs, cur)
	pc.rows(f.pairs, cur)
	f.buf = pc.Enc.Finish()
	f.adopt(n)
	return f.adopted
}

// adopt adopts the estimates at twice the number of the last time, and at least every maxAdopt
// snapshots.
func (f *fitter) adopt(n uint64) {
	if n < f.due {
		return
	}
	f.due = min(2*n, n+maxAdopt)
	for k, e := range f.estimate.size {
		if f.count[k] >= minObservations && fixed.Abs(e.floor) <= maxFloor {
			f.adopted.size[k] = e
		}
	}
	for i, e := range f.estimate.contacts {
		if fixed.Abs(e-f.adopted.contacts[i]) > fixed.LogOne/4 {
			f.adopted.contacts[i] = e
		}
	}
}

// moved learns from an object that moved from base to now along axis k, Q4.
func (f *fitter) moved(p *pose, k int, base, now int64) {
	s := &f.estimate.size[k]
	above := s.above(&p.base, k, base)
	position, extent := now-base, p.now.Extent(k)-p.base.Extent(k)
	// The estimates are quantiles, so outliers do not matter: an eighth of the objects lie below
	// the ground.
	step := s.half/(256+f.count[k]) + 1
	if above < 0 {
		step *= -7
	}
	s.floor += step
	near := fixed.Abs(above) < minHalf+s.half>>3
	if f.count[k] > trustedCount && !near || fixed.Abs(extent) < minExtentChange {
		return
	}
	step = s.half/(4+f.count[k]/4) + 1
	if (position-s.half*extent>>quat.Shift > 0) != (extent > 0) {
		step = -step
	}
	s.half = min(max(s.half+step, minHalf), maxHalf)
	f.count[k] = min(f.count[k]+1, maxCount)
}

// touched learns from an object at rest that changed, far from the nearest moving one. One in 64 is
// farther than the estimate.
func (f *fitter) touched(far int64) {
	t := &f.estimate.contacts[f.codec.refs.model()]
	if far > *t {
		*t = min(*t+64, maxContact)
	} else {
		*t -= 1 + max(0, *t-far-4*fixed.LogOne)>>5
	}
}
