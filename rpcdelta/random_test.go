package rpcdelta

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// picker chooses a number from 0 to n; rapid or a seeded generator is behind it.
type picker func(n int64) int64

func rapidPicker(t *rapid.T) picker {
	return func(n int64) int64 { return rapid.Int64Range(0, n).Draw(t, "pick") }
}

func randPicker(rng *rand.Rand) picker {
	return func(n int64) int64 { return rng.Int64N(n + 1) }
}

func (pick picker) between(lo, hi int64) int64 { return lo + pick(hi-lo) }

var allKinds = []Kind{
	KindVec2, KindVec3, KindScalar, KindAngle, KindQuat, KindUnitVec,
	KindUint, KindInt, KindBool, KindBits, KindFixed, KindBytes,
}

// field picks the options of a field of kind k.
func (pick picker) field(name string, k Kind) Field {
	f := Field{Name: name, Kind: k}
	switch c, _ := k.class(); {
	case k == KindUnitVec || c == classQuat:
		f.Bits = int(pick.between(3, 20))
	case c == classAngle:
		f.Bits, f.Count = int(pick.between(2, 24)), int(pick.between(1, 4))
	case c == classGroup:
		f.Resolution = []float64{0.001, 0.1, 0.25, 1, 7}[pick(4)]
		if k == KindScalar {
			f.Count = int(pick.between(1, 4))
		}
		if pick(1) == 1 {
			lo := pick.between(-math.MaxInt32, math.MaxInt32)
			hi := pick.between(lo, math.MaxInt32)
			f.Min, f.Max = number(float64(lo)*f.Resolution), number(float64(hi)*f.Resolution)
		}
	case c == classBinary:
		f.Count = int(pick.between(1, 4))
		if k != KindBool {
			f.Width = int(pick.between(1, 64))
		}
	case k == KindFixed:
		f.Size = int(pick.between(1, 20))
	default:
		f.Max = number(float64(pick.between(1, 200)))
	}
	return f
}

// schema picks one of up to six fields.
func (pick picker) schema() *Schema {
	fields := make([]Field, pick.between(1, 6))
	for i := range fields {
		fields[i] = pick.field(fmt.Sprintf("F%d", i), allKinds[pick(int64(len(allKinds)-1))])
	}
	s, err := NewSchema("Random", float64(pick.between(1, 120)), fields)
	if err != nil {
		panic(err)
	}
	return s
}

// frame fills f with components in range: near those of base, at the ends, or
// anywhere.
func (pick picker) frame(s *Schema, f, base *Frame) {
	for i := range s.plans {
		p := &s.plans[i]
		if p.class == classBlob {
			f.Bytes[p.blob] = append(f.Bytes[p.blob][:0], pick.bytes(p, base.Bytes[p.blob])...)
			continue
		}
		style := pick(4)
		for k := range p.n {
			lo, hi := p.componentRange(k)
			was := int64(base.Ints[p.at+k])
			if lo == 0 {
				was = int64(uint32(was))
			}
			v := min(max(was, lo), hi) // a new frame is all zeros, which may be outside
			switch style {
			case 1:
				v = min(max(was+pick.between(-20, 20), lo), hi)
			case 2:
				v = pick.between(lo, hi)
			case 3:
				v = []int64{lo, hi}[pick(1)]
			case 4:
				v = min(max(0, lo), hi)
			}
			f.Ints[p.at+k] = int32(uint32(v))
		}
	}
}

// walk moves the numbers of f by little, as play does.
func (pick picker) walk(s *Schema, f *Frame) {
	for i := range s.plans {
		p := &s.plans[i]
		for k := range p.n {
			lo, hi := p.componentRange(k)
			if p.class == classBinary || p.class == classQuat && k == 0 {
				continue
			}
			f.Ints[p.at+k] = int32(min(max(int64(f.Ints[p.at+k])+pick.between(-2, 2), lo), hi))
		}
	}
}

// bytes picks a byte string of a field: that of the frame before, a part of it,
// a longer one, or another.
func (pick picker) bytes(p *plan, base []byte) []byte {
	size := pick.between(int64(p.minBytes), int64(p.maxBytes))
	b := make([]byte, size)
	if style := pick(3); style != 0 {
		copy(b, base)
		for range style - 1 {
			if size > 0 {
				b[pick(size-1)] ^= byte(pick(255))
			}
		}
		return b
	}
	for i := range b {
		b[i] = byte(pick(255))
	}
	return b
}
