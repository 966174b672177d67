package snapshot

import (
	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// physics holds the properties of a world on which predictions depend: the size of its objects, its
// ground, and the distance at which objects disturb others. Each set has its own copy. The server
// estimates it; clients decode it.
type physics struct {
	size    [3]size // by axis
	contact int64   // log2 of a quarter of the squared distance at which objects disturb others, 0 (unknown) to maxContact
}

// size is the size of objects and the position of the ground along one axis, Q4.
type size struct {
	floor int64 // position of objects that lie flat on the ground, -maxFloor to maxFloor
	half  int64 // half the size of an object, 0 (unknown) to maxHalf
}

const (
	unknownHalf = 4 * minHalf
	minHalf     = 16
	maxHalf     = 1 << 24

	unknownContact = 40 * fixed.LogOne
	maxContact     = 1<<14 - 1
	maxFloor       = 1<<30 - 1
	noGround       = 1 << 40
	floorBits      = 4 // fractional bits of size.floor
)

// above returns the height of the lowest corner above the ground along axis k at position at, Q4.
func (s *size) above(m *quat.Matrix, k int, at int64) int64 {
	return at - s.floor - s.half*(m.Extent(k)-quat.One)>>quat.Shift
}

// fitter estimates the physics of a world from the movements of its objects.
type fitter struct {
	world    *History
	estimate physics
	heights  [3]int64 // number of observations of heights, by axis
	floors   [3]int64 // fractional part of each estimated floor, in 1/2^floorShift
	near     [3]int64 // moving average of the share of objects near the ground, 0 to maxNear
	halves   [3]int64 // number of observations of the size, by axis
	touches  int64    // number of observations of contacts
	adopted  physics
	due      uint64     // first snapshot at which estimates are adopted again
	moving   [][3]int64 // scratch: positions of the moving objects
	resting  []int32    // scratch: indices of the objects at rest that moved
}

const (
	fitEvery        = 4       // snapshots per observation
	fitDistance     = 6       // snapshots between the sets that are compared
	maxTouched      = 32      // maximum number of contacts of an observation
	minExtentChange = 1 << 12 // minimum change of extent that is an observation, Q16
	maxAdopt        = 600
	maxNear         = 1 << 12
	floorShift      = 8
	minHalves       = 64  // number of observations before a size is adopted
	trustedHalves   = 192 // number of observations after which only objects near the ground count
	maxHalves       = 1 << 12
	maxHeights      = 1 << 13 // number of observations after which the learning rate is constant
)

func newFitter(w *History) *fitter {
	f := &fitter{world: w}
	f.estimate.contact = unknownContact
	return f
}

// observe learns from snapshot n, and returns the physics for the next one.
func (f *fitter) observe(n uint64) physics {
	s := f.world.schema
	if n < 2*fitDistance || n%fitEvery != 0 || s.anchor < 0 {
		return f.adopted
	}
	cur, base, before := f.world.set(n), f.world.set(n-fitDistance), f.world.set(n-2*fitDistance)
	if f.estimate.size == [3]size{} {
		for k, low := range base.lowest() {
			f.estimate.size[k] = size{low << floorBits, unknownHalf}
		}
	}
	f.moving, f.resting = f.moving[:0], f.resting[:0]
	i, j := 0, 0
	for k, o := range base.objects {
		a, b := follow(cur.objects, &i, o), follow(before.objects, &j, o)
		if a < 0 || b < 0 {
			continue
		}
		now, row := cur.Row(int(a)), base.Row(k)
		switch {
		case !s.differ(now, row):
		case s.differ(row, before.Row(int(b))):
			f.moved(row, now)
			x, y, z := s.position(now)
			f.moving = append(f.moving, [3]int64{x, y, z})
		default:
			f.resting = append(f.resting, a)
		}
	}
	if len(f.moving) > 0 && len(f.resting) <= maxTouched {
		for _, k := range f.resting {
			x, y, z := s.position(cur.Row(int(k)))
			least := int64(1) << 62
			for i := range f.moving {
				least = min(least, quarterSquare(&f.moving[i], x, y, z))
			}
			f.touched(fixed.Log2(least))
		}
	}
	f.adopt(n)
	return f.adopted
}

// adopt copies estimates that changed to adopted, at intervals that grow to maxAdopt snapshots.
func (f *fitter) adopt(n uint64) {
	if n < f.due {
		return
	}
	f.due = min(n+n/2, n+maxAdopt)
	for k, e := range f.estimate.size {
		to := &f.adopted.size[k]
		small := to.half >> 5
		if f.halves[k] >= minHalves && f.near[k] > maxNear/4 && fixed.Abs(e.floor) <= maxFloor &&
			(fixed.Abs(e.floor-to.floor) > small || fixed.Abs(e.half-to.half) > small) {
			*to = e
		}
	}
	if e := f.estimate.contact; fixed.Abs(e-f.adopted.contact) > fixed.LogOne/2 {
		f.adopted.contact = e
	}
}

// moved updates the estimates from an object that moved, given its rows in two snapshots.
func (f *fitter) moved(row, now []int32) {
	s := f.world.schema
	if s.orientation < 0 {
		return
	}
	g, at := &s.grains[0], s.at[s.orientation]
	var a, b quat.Fixed
	g.Unpack(&a, row[at:at+4])
	g.Unpack(&b, now[at:at+4])
	var was, is quat.Matrix
	was.Set(&a)
	is.Set(&b)
	for k := range s.fields[s.anchor].N {
		at := s.positions.from + k
		f.movedAlong(k, &was, &is, int64(row[at])*16, int64(now[at])*16)
	}
}

// movedAlong updates the estimates for axis k from an object that moved. Positions are in Q4.
func (f *fitter) movedAlong(k int, was, is *quat.Matrix, base, now int64) {
	s := &f.estimate.size[k]
	above := s.above(was, k, base)
	near := fixed.Abs(above) < minHalf+s.half>>3
	if f.near[k] -= f.near[k] >> 6; near {
		f.near[k] += maxNear >> 6
	}
	// The ground is estimated as a quantile, which outliers do not affect: an eighth of the objects
	// lie below it.
	f.heights[k] = min(f.heights[k]+1, maxHeights)
	step := s.half<<floorShift/(512+8*f.heights[k]) + 1
	if above < 0 {
		step *= -7
	}
	f.floors[k] += step
	s.floor += f.floors[k] >> floorShift
	f.floors[k] &= 1<<floorShift - 1

	position, extent := now-base, is.Extent(k)-was.Extent(k)
	if fixed.Abs(extent) < minExtentChange {
		return
	}
	step = s.half/(4+f.halves[k]/4) + 1
	if f.halves[k] > trustedHalves {
		if !near {
			return
		}
		step = s.half/(192+f.halves[k]/4) + 1
	}
	if (position-s.half*extent>>quat.Shift > 0) != (extent > 0) {
		step = -step
	}
	s.half = min(max(s.half+step, minHalf), maxHalf)
	f.halves[k] = min(f.halves[k]+1, maxHalves)
}

// touched updates the estimated contact distance from an object at rest that moved. far is log2 of
// a quarter of its squared distance to the nearest moving object. The estimate is a quantile: about
// one of 64 objects is farther.
func (f *fitter) touched(far int64) {
	t, most := &f.estimate.contact, int64(1)<<(2+min(f.touches/8, 3))
	f.touches++
	if far > *t {
		*t = min(*t+64, maxContact)
	} else {
		*t = max(*t-1-max(0, *t-far-2*fixed.LogOne)/most, 1)
	}
}
