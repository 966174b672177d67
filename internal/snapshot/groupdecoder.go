package snapshot

// GroupDecoder decodes the payloads of [Encoder.AppendObjects]. Not safe for concurrent use.
type GroupDecoder struct {
	codec payloadCodec
	empty *Set
	base  Set       // scratch for the baseline
	old   [refs]Set // scratch for the references

	decoded *Set    // destination of the last call of Decode
	from    *Packed // baseline of that call, or nil
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
// last, if the sets to which its payload refers are unchanged.
func (d *GroupDecoder) Store(p *Packed, s *Set, like *Packed) {
	base := d.from
	if s != d.decoded {
		base = nil
	}
	p.store(s, like, base, d.codec.written)
}

// Step returns the reference step of the payload that Decode decoded last, or 0 if it has no
// references.
func (d *GroupDecoder) Step() int { return int(d.codec.refs.step) }

// Check returns the hash of objects that [Set.Check] returns.
func (d *GroupDecoder) Check(p *Packed) uint16 {
	d.base.unpack(p)
	return d.base.hash()
}
