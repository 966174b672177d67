package statesync

import "github.com/uplink-rpc/uplink/internal/fixed"

const (
	// neighbors is how many of the objects coded last are looked at for the nearest.
	maxNeighbors = 32
	// places is how many are kept: a power of two, above neighbors.
	capacity = 64
)

// around is what the objects coded last leave for those after them.
type neighborContext struct {
	n        int // objects so far
	position [capacity][3]int64
	fields   int
	misses   [][3]int64 // by object and field: Q4; of orientations Q16, in radians
	sums     []int64    // logarithms
}

func (a *neighborContext) init(fields int) {
	a.fields, a.misses, a.sums = fields, make([][3]int64, capacity*fields), make([]int64, capacity*fields)
}

// miss is by what the components of an object's field missed.
func (a *neighborContext) miss(object, field int) *[3]int64 { return &a.misses[object*a.fields+field] }

// missed is the logarithm of their sum.
func (a *neighborContext) missed(object, field int) *int64 { return &a.sums[object*a.fields+field] }

// open begins an object at a position. It gives that, and the one before that was nearest, or -1.
func (a *neighborContext) open(position [3]int64) (here, near int) {
	here, near = a.n%capacity, -1
	smallest := int64(-1)
	for i := max(0, a.n-maxNeighbors); i < a.n; i++ {
		p := &a.position[i%capacity]
		d := fixed.Abs(p[0]-position[0]) + fixed.Abs(p[1]-position[1]) + fixed.Abs(p[2]-position[2])
		if smallest < 0 || d < smallest {
			smallest, near = d, i%capacity
		}
	}
	a.position[here] = position
	clear(a.misses[here*a.fields : (here+1)*a.fields])
	clear(a.sums[here*a.fields : (here+1)*a.fields])
	return here, near
}
