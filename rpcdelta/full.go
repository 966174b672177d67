package rpcdelta

import "math/bits"

// FullBits is the size in bits of the frame as the engine would send it: numbers
// packed, binary data plain, nothing subtracted. It is what savings are
// measured against.
func (s *Schema) FullBits(f *Frame) int {
	n := s.fixedBits
	for i := range s.groups {
		g := &s.groups[i]
		n += int(g.sizes[lengthOf(f.Ints[g.at:][:g.n])])
	}
	for _, i := range s.varying {
		n += s.plans[i].fullBits(f)
	}
	return n
}

// sized notes what the last plan adds to FullBits.
func (s *Schema) sized() {
	i := len(s.plans) - 1
	switch p := &s.plans[i]; p.class {
	case classQuat, classBinary:
		s.fixedBits += p.fullBits(nil)
	case classGroup:
		s.groups = append(s.groups, sizedGroup{p.at, p.n, p.sizes})
	case classAngle, classBlob:
		s.varying = append(s.varying, i)
	}
}

// sizedGroup is what FullBits reads of a group.
type sizedGroup struct {
	at, n int
	sizes *[32]uint16
}

// lengthOf is that of the largest magnitude, in bits.
func lengthOf(ints []int32) int {
	m := uint32(0) // has its bits
	for _, x := range ints {
		m |= uint32(max(x, -x))
	}
	return bits.Len32(m) & 31
}

// FieldBits is the part of field i, an index of Fields, in FullBits.
func (s *Schema) FieldBits(i int, f *Frame) int { return s.plans[i].fullBits(f) }

func (p *plan) fullBits(f *Frame) int {
	switch p.class {
	case classBinary:
		return 8 * p.values() * p.valueBytes()
	case classBlob:
		n := 8 * len(f.Bytes[p.blob])
		if p.lengthBytes() > 0 {
			n += 8 * uvarintLen(len(f.Bytes[p.blob]))
		}
		return n
	case classGroup, classAngle, classQuat:
	}
	return p.numberBits(f)
}

// numberBits is the size of the field's numbers without a baseline.
func (p *plan) numberBits(f *Frame) int {
	switch p.class {
	case classGroup:
		return int(p.sizes[lengthOf(f.Ints[p.at:][:p.n])])
	case classAngle:
		n := 0
		for _, x := range f.Ints[p.at:][:p.n] {
			n += 1 + int(p.bits)&int(mask(x))
		}
		return n
	case classQuat:
		return 2 + 3*int(p.bits)
	case classBinary, classBlob:
	}
	return 0
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
