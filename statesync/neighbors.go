package statesync

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

const (
	// maxNeighbors is the number of previously coded objects among which the nearest is searched.
	maxNeighbors = 32
	// capacity is the number of objects to keep: a power of two, above maxNeighbors.
	capacity = 64
)

// neighborContext is the context that the last coded objects leave for the following ones.
type neighborContext struct {
	n        int // objects so far
	position [capacity][3]int64
	fields   int
	misses   [][3]int64 // prediction errors by object and field: Q4, or Q16 radians
	sums     []int64    // log2 of the sums of misses
}

func (a *neighborContext) init(fields int) {
	a.fields, a.misses, a.sums = fields, make([][3]int64, capacity*fields), make([]int64, capacity*fields)
}

// miss returns the prediction errors of a field's components.
func (a *neighborContext) miss(object, field int) *[3]int64 { return &a.misses[object*a.fields+field] }

// missed returns log2 of the sum of the errors.
func (a *neighborContext) missed(object, field int) *int64 { return &a.sums[object*a.fields+field] }

// open starts an object. It returns its index, and that of the nearest previous object, or -1.
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
