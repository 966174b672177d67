package rpcdelta

import (
	"errors"
	"fmt"
	"math"
)

// Ranges of quantized numbers. The default is less than 2^23 steps either way;
// a field with wider bounds has up to 32 bits and a wider group header.
const (
	defaultLimit = 1<<23 - 1
	groupMax     = 24
	wideGroupMax = 31
)

// plan is a field compiled: where its components lie and what they may be.
type plan struct {
	field *Field
	class class
	at, n int // components: Ints[at : at+n]

	scale  float64     // steps a unit: group and angle
	lo, hi int32       // range of a component: group, angle, quat (its smallest three)
	max    uint32      // limit of the group header
	sizes  *[32]uint16 // group: see groupSizes
	bits   uint        // angle, quat, unitvec
	signed bool        // binary: two's complement
	width  uint        // binary: bits of one value

	blob               int // byte string: Bytes[blob]
	minBytes, maxBytes int
}

// addPlan checks f, fills in its defaults and appends its plan.
func (s *Schema) addPlan(f *Field) error {
	if f.Name == "" {
		return errors.New("a field needs a name")
	}
	if s.field(f.Name) != f {
		return errors.New("the name is used twice")
	}
	c, ok := f.Kind.class()
	if !ok {
		return fmt.Errorf("unknown kind %q", f.Kind)
	}
	if err := f.fillCount(); err != nil {
		return err
	}
	if err := f.checkOptions(c); err != nil {
		return err
	}
	p := plan{field: f, class: c, at: s.ints, n: f.Values(), max: groupMax}
	var err error
	switch c {
	case classGroup:
		err = p.compileGroup()
		p.sizes = p.groupSizes()
	case classAngle:
		err = p.compileAngle()
	case classQuat:
		err = p.compileQuat()
	case classBinary:
		err = p.compileBinary()
		s.binary += p.values() * p.valueBytes()
	case classBlob:
		err = p.compileBlob()
		p.n, p.blob = 0, s.blobs
		s.blobs++
		s.binary += p.maxBytes + p.lengthBytes()
	}
	s.ints += p.n
	s.plans = append(s.plans, p)
	if err == nil {
		s.sized()
	}
	return err
}

func (f *Field) fillCount() error {
	if n := f.Kind.values(); n != 0 {
		if f.Count > 1 && f.Count != n {
			return fmt.Errorf("count %d, but a %s has %d values", f.Count, f.Kind, n)
		}
		if len(f.Columns) != 0 && len(f.Columns) != n {
			return fmt.Errorf("%d columns, want %d for a %s", len(f.Columns), n, f.Kind)
		}
		f.Count = 0
		return nil
	}
	if f.Count == 0 {
		f.Count = max(1, len(f.Columns))
	}
	if f.Count < 1 || f.Count > MaxComponents {
		return fmt.Errorf("count %d, want 1 to %d", f.Count, MaxComponents)
	}
	if len(f.Columns) != 0 && len(f.Columns) != f.Count {
		return fmt.Errorf("%d columns, but count is %d", len(f.Columns), f.Count)
	}
	return nil
}

// checkOptions refuses options that the field's kind does not read, since an
// option that is silently ignored is a wrong field.
func (f *Field) checkOptions(c class) error {
	ranged := c == classGroup && f.Kind != KindUnitVec
	for _, o := range []struct {
		name      string
		set, read bool
	}{
		{"resolution", f.Resolution != 0, ranged},
		{"bits", f.Bits != 0, c == classAngle || c == classQuat || f.Kind == KindUnitVec},
		{"width", f.Width != 0, c == classBinary},
		{"size", f.Size != 0, f.Kind == KindFixed},
		{"min", f.Min != nil, ranged},
		{"max", f.Max != nil, ranged || f.Kind == KindBytes},
		{"velocity", f.Velocity != "", ranged || c == classQuat},
		{"velocity_scale", f.VelocityScale != 0 && f.VelocityScale != 1, f.Velocity != ""},
	} {
		if o.set && !o.read {
			return fmt.Errorf("%s means nothing for a %s", o.name, f.Kind)
		}
	}
	return nil
}

func (p *plan) compileGroup() error {
	f := p.field
	if f.Kind == KindUnitVec {
		if err := p.fillBits(12, 3, 20); err != nil {
			return err
		}
		p.n = 2
		p.hi = 1<<(p.bits-1) - 1
		p.lo = -p.hi
		return nil
	}
	if !(f.Resolution > 0) || math.IsInf(f.Resolution, 0) {
		return fmt.Errorf("resolution %v, want a size of one step above 0", f.Resolution)
	}
	p.scale = 1 / f.Resolution
	if math.IsInf(p.scale, 0) {
		return fmt.Errorf("resolution %v is too small", f.Resolution)
	}
	var err error
	if p.lo, err = p.bound("min", f.Min, -defaultLimit); err != nil {
		return err
	}
	if p.hi, err = p.bound("max", f.Max, defaultLimit); err != nil {
		return err
	}
	if p.lo > p.hi {
		return fmt.Errorf("min %v is above max %v", p.restore(p.lo), p.restore(p.hi))
	}
	if p.lo < -defaultLimit-1 || p.hi > defaultLimit {
		p.max = wideGroupMax
	}
	return nil
}

// bound quantizes a limit of the range.
func (p *plan) bound(name string, v *float64, otherwise int32) (int32, error) {
	if v == nil {
		return otherwise, nil
	}
	x := round(*v, p.scale)
	if !(x >= -math.MaxInt32 && x <= math.MaxInt32) { // a group holds no -2^31
		return 0, fmt.Errorf("%s %v is not below 2^31 steps of %v", name, *v, p.field.Resolution)
	}
	return int32(x), nil
}

func (p *plan) fillBits(otherwise, lo, hi int) error {
	f := p.field
	if f.Bits == 0 {
		f.Bits = otherwise
	}
	if f.Bits < lo || f.Bits > hi {
		return fmt.Errorf("bits %d, want %d to %d", f.Bits, lo, hi)
	}
	p.bits = uint(f.Bits)
	return nil
}

func (p *plan) compileAngle() error {
	if err := p.fillBits(16, 2, 24); err != nil {
		return err
	}
	p.scale = float64(int(1)<<p.bits) / 360
	p.hi = 1<<p.bits - 1
	return nil
}

func (p *plan) compileQuat() error {
	if err := p.fillBits(12, 3, 20); err != nil {
		return err
	}
	p.hi = 1<<(p.bits-1) - 1
	p.lo = -p.hi
	return nil
}

func (p *plan) compileBinary() error {
	f := p.field
	if f.Kind == KindBool {
		if f.Width > 1 {
			return fmt.Errorf("width %d means nothing for a bool", f.Width)
		}
		f.Width = 1
	}
	if f.Width < 1 || f.Width > 64 {
		return fmt.Errorf("width %d, want 1 to 64", f.Width)
	}
	p.width = uint(f.Width)
	p.signed = f.Kind == KindInt
	if p.width > 32 {
		p.n *= 2
	}
	return nil
}

func (p *plan) compileBlob() error {
	f := p.field
	if f.Kind == KindFixed {
		if f.Size < 1 || f.Size > MaxBytes {
			return fmt.Errorf("size %d, want 1 to %d bytes", f.Size, MaxBytes)
		}
		p.minBytes, p.maxBytes = f.Size, f.Size
		return nil
	}
	if f.Max == nil {
		return errors.New("a bytes field needs max, the most bytes it may have")
	}
	if m := *f.Max; !(m >= 1 && m <= MaxBytes) || m != math.Trunc(m) {
		return fmt.Errorf("max %v, want 1 to %d bytes", m, MaxBytes)
	}
	p.maxBytes = int(*f.Max)
	return nil
}

// values is the number of values of a binary field, each of which has one
// component, or two where it is wider than 32 bits.
func (p *plan) values() int {
	if p.width > 32 {
		return p.n / 2
	}
	return p.n
}

// valueBytes is the bytes of one value of a binary field: its width rounded up.
func (p *plan) valueBytes() int { return int(p.width+7) / 8 }

// lengthBytes is the most bytes that the length of a byte string takes.
func (p *plan) lengthBytes() int {
	switch {
	case p.minBytes == p.maxBytes:
		return 0
	case p.maxBytes < 1<<7:
		return 1
	case p.maxBytes < 1<<14:
		return 2
	}
	return 3
}

// binaryRange is the range of component k of a binary field, signed for an
// int and unsigned otherwise.
func (p *plan) binaryRange(k int) (lo, hi int64) {
	w := p.width
	if w > 32 {
		if k%2 == 0 { // the low half has no sign
			if p.signed {
				return math.MinInt32, math.MaxInt32
			}
			return 0, math.MaxUint32
		}
		w -= 32
	}
	if p.signed {
		return -1 << (w - 1), 1<<(w-1) - 1
	}
	return 0, 1<<w - 1
}

func (p *plan) componentLimit(k int) string {
	if p.class == classQuat && k == 0 {
		return "0 to 3 for the index of the largest"
	}
	lo, hi := p.componentRange(k)
	return fmt.Sprintf("%d to %d", lo, hi)
}

func (p *plan) bytesLimit() string {
	if p.minBytes == p.maxBytes {
		return fmt.Sprintf("exactly %d", p.maxBytes)
	}
	return fmt.Sprintf("at most %d", p.maxBytes)
}
