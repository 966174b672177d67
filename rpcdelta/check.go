package rpcdelta

import "fmt"

// bounds are the least value of a component, and how far above it others go.
type bounds struct {
	lo   int32
	span uint32
}

func (s *Schema) compileBounds() {
	s.bounds = make([]bounds, 0, s.ints)
	for i := range s.plans {
		p := &s.plans[i]
		for k := range p.n {
			lo, hi := p.componentRange(k)
			s.bounds = append(s.bounds, bounds{int32(lo), uint32(hi - lo)})
		}
	}
}

// componentRange is the range of component k; that of unsigned integers may be
// above an int32's.
func (p *plan) componentRange(k int) (lo, hi int64) {
	switch {
	case p.class == classQuat && k == 0:
		return 0, 3
	case p.class == classBinary:
		return p.binaryRange(k)
	}
	return int64(p.lo), int64(p.hi)
}

// holds says whether v may be the field's component k.
func (p *plan) holds(k int, v int32) bool {
	lo, hi := p.componentRange(k)
	return uint32(v-int32(lo)) <= uint32(hi-lo)
}

// check says whether f has the shape of the schema's frames.
func (s *Schema) check(f *Frame) error {
	if len(f.Ints) != s.ints || len(f.Bytes) != s.blobs {
		return fmt.Errorf("%w: %s has %d components and %d byte strings, the frame %d and %d",
			ErrSchema, s.rpc, s.ints, s.blobs, len(f.Ints), len(f.Bytes))
	}
	bounds := s.bounds[:len(f.Ints)]
	beyond := int64(0) // below 0 once a component is out of range
	for i, v := range f.Ints {
		b := &bounds[i]
		beyond |= int64(b.span) - int64(uint32(v-b.lo))
	}
	if beyond < 0 {
		return s.rangeErrorOf(f)
	}
	if s.blobs > 0 {
		return s.checkBytes(f)
	}
	return nil
}

func (s *Schema) checkBytes(f *Frame) error {
	for i := range s.plans {
		p := &s.plans[i]
		if p.class != classBlob {
			continue
		}
		if n := len(f.Bytes[p.blob]); n < p.minBytes || n > p.maxBytes {
			return s.rangeError(p.field, fmt.Sprintf("%d bytes", n), p.bytesLimit())
		}
	}
	return nil
}

// rangeErrorOf names the first component of f that is out of range.
func (s *Schema) rangeErrorOf(f *Frame) error {
	for i, v := range f.Ints {
		if b := &s.bounds[i]; uint32(v-b.lo) > b.span {
			return s.componentError(i, v)
		}
	}
	return nil
}

// componentError says what is wrong with component i.
func (s *Schema) componentError(i int, v int32) error {
	for j := range s.plans {
		if p := &s.plans[j]; i < p.at+p.n {
			return s.rangeError(p.field, v, p.componentLimit(i-p.at))
		}
	}
	panic("rpcdelta: no such component")
}
