package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// defaultLimit is the magnitude of the default bounds of a number, in steps: less than 2^23.
const defaultLimit = 1<<23 - 1

// Layout describes where a field lies in a [Frame] and the range of its components. Codecs read
// it; the schema owns it, so do not modify it.
type Layout struct {
	Field *Field
	Class Class
	// At and N are the field's components, Frame.Ints[At : At+N]. Byte strings have none.
	At, N int
	// Lo and Hi bound each component of a number, an angle, a direction, and of a quaternion's
	// smallest three.
	Lo, Hi int32
	// Scale is the number of steps per unit of a number or angle.
	Scale float64
	// Bits is the size in bits of a component of an angle, quaternion or direction.
	Bits uint
	// Width is the size in bits of one value of an integer, 1 to 64. A value wider than 32 bits has
	// two components, the low half first.
	Width  uint
	Signed bool // integers in two's complement
	// Blob is the index of a byte string, Frame.Bytes[Blob]. Its length is MinBytes to MaxBytes.
	Blob               int
	MinBytes, MaxBytes int

	fieldValues int // number of values of the field
}

func (p *Layout) compileGroup() error {
	f := p.Field
	if !(f.Resolution > 0) || math.IsInf(f.Resolution, 0) {
		return fmt.Errorf("resolution %v, want a size of one step above 0", f.Resolution)
	}
	p.Scale = 1 / f.Resolution
	if math.IsInf(p.Scale, 0) {
		return fmt.Errorf("resolution %v is too small", f.Resolution)
	}
	var err error
	if p.Lo, err = p.bound("min", f.Min, -defaultLimit); err != nil {
		return err
	}
	if p.Hi, err = p.bound("max", f.Max, defaultLimit); err != nil {
		return err
	}
	if p.Lo > p.Hi {
		return fmt.Errorf("min %v is above max %v", p.restore(p.Lo), p.restore(p.Hi))
	}
	return nil
}

// bound quantizes a bound of the range; otherwise is the default.
func (p *Layout) bound(name string, v *float64, otherwise int32) (int32, error) {
	if v == nil {
		return otherwise, nil
	}
	x := round(*v, p.Scale)
	if !(x >= -math.MaxInt32 && x <= math.MaxInt32) { // the group encoding has no -2^31
		return 0, fmt.Errorf("%s %v is not below 2^31 steps of %v", name, *v, p.Field.Resolution)
	}
	return int32(x), nil
}

func (p *Layout) fillBits(otherwise, lo, hi int) error {
	f := p.Field
	if f.Bits = cmp.Or(f.Bits, otherwise); f.Bits < lo || f.Bits > hi {
		return fmt.Errorf("bits %d, want %d to %d", f.Bits, lo, hi)
	}
	p.Bits = uint(f.Bits)
	return nil
}

func (p *Layout) compileAngle() error {
	if err := p.fillBits(16, 2, 24); err != nil {
		return err
	}
	p.Scale = float64(int(1)<<p.Bits) / 360
	p.Hi = 1<<p.Bits - 1
	return nil
}

// compileUnit sets the range of the components of a quaternion or direction.
func (p *Layout) compileUnit() error {
	if err := p.fillBits(12, 3, 20); err != nil {
		return err
	}
	p.Hi = 1<<(p.Bits-1) - 1
	p.Lo = -p.Hi
	return nil
}

func (p *Layout) compileBinary() error {
	f := p.Field
	if f.Kind == KindBool {
		if f.Width > 1 {
			return fmt.Errorf("width %d means nothing for kind bool", f.Width)
		}
		f.Width = 1
	}
	if f.Width < 1 || f.Width > 64 {
		return fmt.Errorf("width %d, want 1 to 64", f.Width)
	}
	p.Width = uint(f.Width)
	p.Signed = f.Kind == KindInt
	if p.Width > 32 {
		p.N *= 2
	}
	return nil
}

func (p *Layout) compileBlob() error {
	f := p.Field
	if f.Kind == KindFixed {
		if p.MinBytes, p.MaxBytes = f.Size, f.Size; f.Size < 1 || f.Size > MaxBytes {
			return fmt.Errorf("size %d, want 1 to %d bytes", f.Size, MaxBytes)
		}
		return nil
	}
	if f.Max == nil {
		return errors.New("a bytes field needs max, its maximum size in bytes")
	}
	if m := *f.Max; !(m >= 1 && m <= MaxBytes) || m != math.Trunc(m) {
		return fmt.Errorf("max %v, want 1 to %d bytes", m, MaxBytes)
	}
	p.MaxBytes = int(*f.Max)
	return nil
}

// Values returns the number of values of an integer field.
func (p *Layout) Values() int {
	if p.Width > 32 {
		return p.N / 2
	}
	return p.N
}

// ValueBytes returns the size of one value of an integer field: Width rounded up to bytes.
func (p *Layout) ValueBytes() int { return int(p.Width+7) / 8 }

// LengthBytes returns the maximum size of the length of a byte string as a varint, 0 if the length
// is fixed.
func (p *Layout) LengthBytes() int {
	if p.MinBytes == p.MaxBytes {
		return 0
	}
	return (bits.Len(uint(p.MaxBytes)) + 6) / 7
}

// ComponentRange returns the range of component k, 0 to N-1. The components of unsigned integers
// of 32 bits may exceed the range of int32; frames hold their two's complement.
func (p *Layout) ComponentRange(k int) (lo, hi int64) {
	switch {
	case p.Class == ClassQuat && k == 0:
		return 0, 3
	case p.Class != ClassInteger:
		return int64(p.Lo), int64(p.Hi)
	}
	w := p.Width
	if w > 32 {
		w -= 32
		if k%2 == 0 { // the low half has all bits
			w = 32
		}
	}
	if p.Signed {
		return -1 << (w - 1), 1<<(w-1) - 1
	}
	return 0, 1<<w - 1
}

// Holds reports whether v is in the range of component k.
func (p *Layout) Holds(k int, v int32) bool {
	lo, hi := p.ComponentRange(k)
	return uint32(v-int32(lo)) <= uint32(hi-lo)
}

func (p *Layout) componentLimit(k int) string {
	if p.Class == ClassQuat && k == 0 {
		return "0 to 3 for the index of the largest"
	}
	lo, hi := p.ComponentRange(k)
	return fmt.Sprintf("%d to %d", lo, hi)
}

func (p *Layout) bytesLimit() string {
	if p.MinBytes == p.MaxBytes {
		return fmt.Sprintf("exactly %d", p.MaxBytes)
	}
	return fmt.Sprintf("at most %d", p.MaxBytes)
}

// valueRange returns the range of a value of an integer field. If a float64 cannot represent the
// maximum, it is rounded down.
func (p *Layout) valueRange() (lo, hi float64) {
	bits := int(p.Width)
	if p.Signed {
		bits--
		lo = -math.Ldexp(1, bits)
	}
	if bits > 53 {
		return lo, math.Nextafter(math.Ldexp(1, bits), 0)
	}
	return lo, math.Ldexp(1, bits) - 1
}

func (p *Layout) valueLimit() string {
	number := func(v int32) string { return strconv.FormatFloat(float64(v)/p.Scale, 'f', -1, 64) }
	return number(p.Lo) + " to " + number(p.Hi)
}

// setUint sets value k of an integer field to the low bits of v.
func (p *Layout) setUint(f *Frame, k int, v uint64) {
	if p.Width > 32 {
		f.Ints[p.At+2*k], f.Ints[p.At+2*k+1] = int32(uint32(v)), int32(uint32(v>>32))
		return
	}
	f.Ints[p.At+k] = int32(uint32(v))
}

// restore returns the value of v steps. If the scale is an integer, it divides by it, because for
// resolutions such as 0.1 the quotient is the float64 nearest to the decimal number.
func (p *Layout) restore(v int32) float64 {
	if steps := math.Round(p.Scale); steps >= 1 && math.Abs(p.Scale-steps) < 1e-12*steps {
		return float64(v) / steps
	}
	return float64(v) * p.Field.Resolution
}

func (p *Layout) degrees(v int32) float64 {
	if v > p.Hi/2 {
		v -= p.Hi + 1
	}
	return float64(v) * 360 / float64(int(p.Hi)+1)
}
