package statesync

import "github.com/uplink-rpc/uplink/internal/codec/fixed"

const (
	// neighbors is how many of the objects coded last are looked at for the nearest.
	neighbors = 32
	// places is how many are kept: a power of two, above neighbors.
	places = 64
)

// around is what the objects coded last leave for those after them.
type around struct {
	n      int // objects so far
	place  [places][3]int64
	fields int
	misses [][3]int64 // by object and field: Q4; of orientations Q16, in radians
	sums   []int64    // logarithms
}

func (a *around) init(fields int) {
	a.fields, a.misses, a.sums = fields, make([][3]int64, places*fields), make([]int64, places*fields)
}

// miss is by what the components of an object's field missed.
func (a *around) miss(object, field int) *[3]int64 { return &a.misses[object*a.fields+field] }

// missed is the logarithm of their sum.
func (a *around) missed(object, field int) *int64 { return &a.sums[object*a.fields+field] }

// open begins an object at a place. It gives that, and the one before that was nearest, or -1.
func (a *around) open(place [3]int64) (here, near int) {
	here, near = a.n%places, -1
	least := int64(-1)
	for i := max(0, a.n-neighbors); i < a.n; i++ {
		p := &a.place[i%places]
		d := fixed.Abs(p[0]-place[0]) + fixed.Abs(p[1]-place[1]) + fixed.Abs(p[2]-place[2])
		if least < 0 || d < least {
			least, near = d, i%places
		}
	}
	a.place[here] = place
	clear(a.misses[here*a.fields : (here+1)*a.fields])
	clear(a.sums[here*a.fields : (here+1)*a.fields])
	return here, near
}
