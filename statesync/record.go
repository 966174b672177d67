package statesync

import "github.com/uplink-rpc/uplink/snapshot"

// record is one update, at either end.
type record struct {
	object snapshot.Object
	gone   bool
	rests  bool  // at rest
	zero   bool  // all fields that are zero at rest are zero
	n      uint8 // index in its slab
	seq    uint64
	tick   int64
	of     *known
	older  *record // of the same object
	in     *slab
}

// row returns the object's components.
func (r *record) row() []int32 {
	at := int(r.n) * r.in.stride
	return r.in.ints[at : at+r.in.row : at+r.in.row]
}

// learned returns the changes per tick of components without a velocity (Q8, see field.trend), and
// from plan.trends on log2 of each field's prediction error.
func (r *record) learned() []int32 {
	at := int(r.n) * r.in.stride
	return r.in.ints[at+r.in.row : at+r.in.stride]
}

// slab is the memory of several records, whose size depends on the schema.
type slab struct {
	ints        []int32
	row, stride int // components of a row, and of a record
}

// slabRecords is the number of records in a slab.
const slabRecords = 32

// pool is a list of unused records, linked by older.
type pool struct {
	free *record
}

// take returns a record. All of it but the row is zero.
func (l *pool) take(p *plan) *record {
	if l.free == nil {
		l.grow(p)
	}
	r := l.free
	l.free = r.older
	*r = record{in: r.in, n: r.n}
	clear(r.learned())
	return r
}

func (l *pool) grow(p *plan) {
	n := p.ints + p.trends + len(p.fields)
	in := &slab{make([]int32, slabRecords*n), p.ints, n}
	records := make([]record, slabRecords)
	for i := range records {
		records[i].in, records[i].n = in, uint8(i)
		l.release(&records[i])
	}
}

func (l *pool) release(r *record) { r.older, r.of, l.free = l.free, nil, r }

// releaseAll releases a record and the older ones of the same object.
func (l *pool) releaseAll(r *record) {
	for r != nil {
		older := r.older
		l.release(r)
		r = older
	}
}

// known is an object of which some packet had an update.
type known struct {
	id     uint16
	newest *record
}
