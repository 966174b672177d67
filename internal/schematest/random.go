// Package schematest generates random schemas and frames for property tests.
package schematest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Picker returns a number from 0 to n, from rapid or from a seeded generator.
type Picker func(n int64) int64

// FromRapid returns a Picker that draws from t.
func FromRapid(t *rapid.T) Picker {
	return func(n int64) int64 { return rapid.Int64Range(0, n).Draw(t, "pick") }
}

// FromRand returns a Picker that uses rng.
func FromRand(rng *rand.Rand) Picker {
	return func(n int64) int64 { return rng.Int64N(n + 1) }
}

// Between returns a number from lo to hi.
func (pick Picker) Between(lo, hi int64) int64 { return lo + pick(hi-lo) }

var kinds = []schema.Kind{
	schema.KindVec2, schema.KindVec3, schema.KindScalar, schema.KindAngle, schema.KindQuat, schema.KindUnitVec,
	schema.KindUint, schema.KindInt, schema.KindBool, schema.KindBits, schema.KindFixed, schema.KindBytes,
}

// Field returns a field of kind k with random options.
func (pick Picker) Field(name string, k schema.Kind) schema.Field {
	f := schema.Field{Name: name, Kind: k}
	switch c, _ := k.Class(); {
	case k == schema.KindUnitVec || c == schema.ClassQuat:
		f.Bits = int(pick.Between(3, 20))
	case c == schema.ClassAngle:
		f.Bits, f.Count = int(pick.Between(2, 24)), int(pick.Between(1, 4))
	case c == schema.ClassNumber:
		f.Resolution = []float64{0.001, 0.1, 0.25, 1, 7}[pick(4)]
		if k == schema.KindScalar {
			f.Count = int(pick.Between(1, 4))
		}
		if pick(1) == 1 {
			lo := pick.Between(-math.MaxInt32, math.MaxInt32)
			hi := pick.Between(lo, math.MaxInt32)
			f.Min, f.Max = new(float64(lo)*f.Resolution), new(float64(hi)*f.Resolution)
		}
	case c == schema.ClassInteger:
		f.Count = int(pick.Between(1, 4))
		if k != schema.KindBool {
			f.Width = int(pick.Between(1, 64))
		}
	case k == schema.KindFixed:
		f.Size = int(pick.Between(1, 20))
	default:
		f.Max = new(float64(pick.Between(1, 200)))
	}
	return f
}

// Schema returns a schema of one to six fields.
func (pick Picker) Schema() *schema.Schema {
	fields := make([]schema.Field, pick.Between(1, 6))
	for i := range fields {
		fields[i] = pick.Field(fmt.Sprintf("F%d", i), kinds[pick(int64(len(kinds)-1))])
	}
	s, err := schema.New("Random", float64(pick.Between(1, 120)), fields)
	if err != nil {
		panic(err)
	}
	return s
}

// Frame fills f with components in range: close to those of base, at the ends of the range, or
// anywhere in it.
func (pick Picker) Frame(s *schema.Schema, f, base *schema.Frame) {
	layouts := s.Layouts()
	for i := range layouts {
		p := &layouts[i]
		if p.Class == schema.ClassBytes {
			f.Bytes[p.Blob] = append(f.Bytes[p.Blob][:0], pick.bytes(p, base.Bytes[p.Blob])...)
			continue
		}
		style := pick(4)
		for k := range p.N {
			lo, hi := p.ComponentRange(k)
			v := int64(base.Ints[p.At+k])
			if lo == 0 {
				v = int64(uint32(v))
			}
			switch style {
			case 1:
				v += pick.Between(-20, 20)
			case 2:
				v = pick.Between(lo, hi)
			case 3:
				v = []int64{lo, hi}[pick(1)]
			case 4:
				v = 0
			}
			f.Ints[p.At+k] = int32(uint32(min(max(v, lo), hi))) // 0, as in a new frame, may be out of range
		}
	}
}

// Walk changes the numbers of f by small random amounts.
func (pick Picker) Walk(s *schema.Schema, f *schema.Frame) {
	layouts := s.Layouts()
	for i := range layouts {
		p := &layouts[i]
		for k := range p.N {
			lo, hi := p.ComponentRange(k)
			if p.Class == schema.ClassInteger || p.Class == schema.ClassQuat && k == 0 {
				continue
			}
			f.Ints[p.At+k] = int32(min(max(int64(f.Ints[p.At+k])+pick.Between(-2, 2), lo), hi))
		}
	}
}

// bytes returns a byte string for a field: random bytes, or a copy of base that is truncated or
// extended and may differ in up to two bytes.
func (pick Picker) bytes(p *schema.Layout, base []byte) []byte {
	size := pick.Between(int64(p.MinBytes), int64(p.MaxBytes))
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
