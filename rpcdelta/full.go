package rpcdelta

import "math/bits"

// FullBits is the size in bits of the frame as the engine would send it: numbers
// packed, binary data plain, nothing subtracted. It is what savings are
// measured against.
func (s *Schema) FullBits(f *Frame) int {
	n := s.numberBits(f)
	for i := range s.plans {
		switch p := &s.plans[i]; p.class {
		case classBinary:
			n += 8 * p.values() * p.valueBytes()
		case classBlob:
			n += 8 * len(f.Bytes[p.blob])
			if p.lengthBytes() > 0 {
				n += 8 * uvarintLen(len(f.Bytes[p.blob]))
			}
		case classGroup, classAngle, classQuat:
		}
	}
	return n
}

// numberBits is the size of cur's numbers without a baseline.
func (s *Schema) numberBits(cur *Frame) int {
	n := 0
	for i := range s.plans {
		p := &s.plans[i]
		v := cur.Ints[p.at:][:p.n]
		switch p.class {
		case classGroup:
			m := uint32(0) // has the bits of the largest magnitude
			for _, x := range v {
				m |= uint32(max(x, -x))
			}
			n += int(p.sizes[bits.Len32(m)&31])
		case classAngle:
			for _, x := range v {
				n += 1 + int(p.bits)&int(mask(x))
			}
		case classQuat:
			n += 2 + 3*int(p.bits)
		case classBinary, classBlob:
		}
	}
	return n
}

// mask is -1 where x is not 0.
func mask(x int32) int32 { return (x | -x) >> 31 }

// groupSizes are the bits of a group by those of its largest magnitude.
func (p *plan) groupSizes() *[32]uint16 {
	t := new([32]uint16)
	for m := range int(p.max) + 1 {
		n, _ := groupBits(p.n, 1<<m>>1, p.max)
		t[m] = uint16(n)
	}
	return t
}
