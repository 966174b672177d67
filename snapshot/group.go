package snapshot

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
)

// AppendGroup appends the coded objects of cur, a part of a snapshot, and returns the extended
// slice. There is no header: the decoder must know the baseline's distance. before returns the sets
// of the same part by their age relative to the baseline, which is that of age 0; ages are
// multiples of b.Step, up to 6. Objects that are not in the baseline are left out; left is their
// number. Without a baseline (b.Distance is 0) nothing is read, and all are coded. AppendGroup does
// not allocate once warm if dst has room.
func (e *Encoder) AppendGroup(dst []byte, cur *Set, b Baseline, before func(age int) *Set) (coded []byte, left int) {
	pc := &e.codec
	if pc.schema != cur.schema {
		pc.init(cur.schema, false)
		e.empty = cur.schema.NewSet()
	}
	if pc.oldOnly = b.Distance > 0; pc.oldOnly {
		pc.refs.begin(before(0), int64(b.Distance), b.Step)
	} else {
		pc.refs.begin(e.empty, 1, 0)
	}
	pc.refs.load(before)
	pc.Enc.Reset(dst, 0)
	pc.encode(cur, defaultModel(pc.schema), b.Distance > 0)
	return pc.Enc.Finish(), pc.leftOut
}

// AppendPart appends the newest snapshot of a part, coded against another one that the part has, as
// [Encoder.AppendGroup] does.
func (e *Encoder) AppendPart(dst []byte, p *Part, b Baseline) (coded []byte, left int) {
	n, k := p.next-1, 0
	return e.AppendGroup(dst, p.view(&e.views[0], n), b, func(age int) *Set {
		k++
		return p.view(&e.views[k], n-uint64(b.Distance+age))
	})
}

// GroupDecoder decodes what [Encoder.AppendGroup] encoded. Not safe for concurrent use.
type GroupDecoder struct {
	codec payloadCodec
	empty *Set
	base  Set       // scratch: the baseline
	old   [refs]Set // and the references

	decoded *Set    // by the newest call of Decode
	from    *Packed // its baseline, or nil
}

// NewGroupDecoder returns a decoder of parts of snapshots.
func (s *Schema) NewGroupDecoder() *GroupDecoder {
	d := &GroupDecoder{empty: s.NewSet(), base: Set{schema: s}}
	for i := range d.old {
		d.old[i].schema = s
	}
	d.codec.init(s, true)
	return d
}

// Decode decodes objects into dst, given the distance to the baseline, 0 if there is none. before
// returns copies of the sets to which [Encoder.AppendGroup] referred; if one is nil, the error is
// [ErrBaselineMissing]. Any input is safe. Another error wraps [ErrMalformed]. After an error
// the content of dst is undefined. Only errors allocate once warm.
func (d *GroupDecoder) Decode(dst *Set, coded []byte, distance int, before func(age int) *Packed) error {
	pc := &d.codec
	d.decoded, d.from = dst, nil
	pc.Dec.Reset(coded, 0)
	pc.refs.begin(d.empty, 1, 0)
	if distance > 0 {
		base := before(0)
		if base == nil {
			return ErrBaselineMissing
		}
		d.from = base
		d.base.unpack(base)
		pc.refs.begin(&d.base, int64(distance), 0)
		if pc.refs.step = pc.codeStep(0); pc.refs.step > 0 {
			for i, lag := range References {
				p := before(lag * int(pc.refs.step))
				if p == nil {
					return ErrBaselineMissing
				}
				d.old[i].refer(p)
			}
		}
	}
	pc.refs.loadAll(&d.old)
	return pc.decodeInto(dst, defaultModel(pc.schema))
}

// Store makes p a copy of a set, in the memory of p if that suffices. If another set, which may be
// nil, has the same objects, they share the list. It is fastest for the set that Decode decoded
// last, while the sets to which that referred are as they were.
func (d *GroupDecoder) Store(p *Packed, s *Set, like *Packed) {
	base := d.from
	if s != d.decoded {
		base = nil
	}
	p.store(s, like, base, d.codec.written)
}

// Step returns the step of the references of what Decode decoded last, 0 if there were none.
func (d *GroupDecoder) Step() int { return int(d.codec.refs.step) }

// Check returns the hash of objects that [Set.Check] returns.
func (d *GroupDecoder) Check(p *Packed) uint16 {
	d.base.unpack(p)
	return d.base.hash()
}

// decodeInto decodes objects into dst, against the loaded baseline.
func (pc *payloadCodec) decodeInto(dst *Set, m *modelSet) error {
	pc.begin(m.at(&pc.refs))
	dst.Reset()
	pc.codePhysics(dst)
	pc.loadPhysics(dst)
	pc.invalid = malformed.ErrID
	if !pc.objects(nil) {
		return pc.invalid
	}
	pc.rows(dst)
	switch {
	case pc.Bad:
		return malformed.ErrBounds
	case !pc.Dec.Complete():
		return malformed.ErrLength
	}
	return nil
}

// SameObjects reports whether both sets contain the same objects.
func (s *Set) SameObjects(o *Set) bool {
	return s.sameObjects(o) && sameList(s.objects, o.objects)
}

// Check returns a hash of the objects and their components, for divergence checks.
func (s *Set) Check() uint16 { return s.hash() }

// Insert adds a copy of an object of another set, at its place in the order of ids.
func (s *Set) Insert(from *Set, i int) error {
	o := from.objects[i]
	if k := len(s.objects); k < MaxObjects && (k == 0 || s.objects[k-1].ID < o.ID) {
		copy(s.push(o), from.Row(i))
		return nil
	}
	at, found := s.Index(o.ID)
	switch {
	case found:
		return fmt.Errorf("snapshot: object %d is in the set already", o.ID)
	case len(s.objects) >= MaxObjects:
		return fmt.Errorf("snapshot: object %d: the set has %d objects, want at most %d", o.ID, len(s.objects), MaxObjects)
	}
	s.own()
	s.objects = append(s.objects, Object{})
	copy(s.objects[at+1:], s.objects[at:])
	s.objects[at] = o
	n := s.schema.ints
	s.ints = append(s.ints, from.Row(i)...)
	copy(s.ints[(at+1)*n:], s.ints[at*n:])
	copy(s.ints[at*n:], from.Row(i))
	s.ids = idsOf(s.objects)
	return nil
}

// Memory returns the size of the set's contents in bytes.
func (s *Set) Memory() int { return memory(s) }
