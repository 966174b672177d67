package snapshot

// GroupDecoder decodes what [Encoder.AppendObjects] encoded. Not safe for concurrent use.
type GroupDecoder struct {
	codec payloadCodec
	empty *Set
	base  Set       // scratch: the baseline
	old   [refs]Set // and the references

	decoded *Set    // by the newest call of Decode
	from    *Packed // its baseline, or nil
}

// Decode decodes objects into dst, given the distance to the baseline, 0 if there is none. before
// returns copies of the sets to which [Encoder.AppendObjects] referred; if one is nil, the error is
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
