package statesync

import "github.com/uplink-rpc/uplink/snapshot"

// record is what one update left, at either end.
type record struct {
	object snapshot.Object
	gone   bool
	rests  bool  // at rest
	zero   bool  // what is zero at rest is zero
	n      uint8 // which of its slab's it is
	seq    uint64
	tick   int64
	of     *known
	older  *record // of the same object
	in     *slab
}

// row are the object's components.
func (r *record) row() []int32 {
	at := int(r.n) * r.in.stride
	return r.in.ints[at : at+r.in.row : at+r.in.row]
}

// learned is, of fields that have no velocity, by how many steps a tick each component changed (Q8, see field.trend), and
// after these, from plan.trends on, what each field's prediction missed by (a logarithm).
func (r *record) learned() []int32 {
	at := int(r.n) * r.in.stride
	return r.in.ints[at+r.in.row : at+r.in.stride]
}

// slab is what is not the same size for all of some records: in one piece, as they are many.
type slab struct {
	ints        []int32
	row, stride int // components of a row, and all of a record
}

// slabbed is how many records are made at a time.
const slabRecords = 32

// pool is records that are not in use, linked by older.
type pool struct {
	free *record
}

// take gives a record of which all but the row is zero.
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

// giveAll takes back a record and those of the same object before it.
func (l *pool) releaseAll(r *record) {
	for r != nil {
		older := r.older
		l.release(r)
		r = older
	}
}
