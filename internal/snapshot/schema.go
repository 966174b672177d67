package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/codec/rowpack"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Limits of a schema.
const (
	maxFields     = 32
	maxComponents = 128
)

// Field describes the components of one field of an object. Its class determines how they are
// coded:
//
//   - ClassNumber: one to three numbers that change together, such as a position.
//   - ClassAngle: one to three angles. They wrap: the value after Hi is Lo.
//   - ClassQuat: an orientation as its smallest three: the index of the largest component, 0 to 3,
//     and the other three, from Lo for -1/sqrt 2 to Hi for 1/sqrt 2.
//   - ClassInteger: one integer that is coded as unchanged or as a new value: a boolean, an
//     enumeration, a bit set.
//   - ClassBytes: a byte string of Lo to Hi bytes. The first component is its length; each of the
//     others holds four bytes, low byte first, padded with zeros.
type Field struct {
	Name  string
	Class schema.Class
	// N is the number of components.
	N int
	// Lo and Hi bound each component, except for the index of a quaternion and the bytes of a byte
	// string.
	Lo, Hi int32
}

func (f *Field) check() error {
	span := int64(f.Hi) - int64(f.Lo)
	switch {
	case f.Name == "":
		return errors.New("a field needs a name")
	case span < 0:
		return fmt.Errorf("bounds %d to %d, want them in order", f.Lo, f.Hi)
	case (f.Class == schema.ClassNumber || f.Class == schema.ClassAngle) && (f.N < 1 || f.N > 3):
		return fmt.Errorf("%d components, want 1 to 3", f.N)
	case f.Class == schema.ClassAngle && (span < 1 || span >= 1<<31):
		return fmt.Errorf("bounds %d to %d, want 2 to 2^31 steps a turn", f.Lo, f.Hi)
	case f.Class == schema.ClassQuat && (f.N != 4 || span < 2 || span > 1<<20):
		return fmt.Errorf("an orientation of %d components of %d steps, want 4 components of 3 to 2^20+1 steps", f.N, span+1)
	case f.Class == schema.ClassInteger && f.N != 1:
		return fmt.Errorf("%d components, want 1", f.N)
	case f.Class == schema.ClassBytes && (f.Lo < 0 || f.Hi < 1 || f.Hi > 4*maxComponents):
		return fmt.Errorf("%d to %d bytes, want at most %d", f.Lo, f.Hi, 4*(maxComponents-1))
	case f.Class == schema.ClassBytes && f.N != byteComponents(int(f.Hi)):
		return fmt.Errorf("%d components, want %d", f.N, byteComponents(int(f.Hi)))
	case f.Class > schema.ClassBytes:
		return fmt.Errorf("unknown class %d", f.Class)
	}
	return nil
}

// predicted reports whether the codec predicts the field. Other fields are coded as unchanged or as
// a new value.
func (f *Field) predicted() bool {
	return f.Class != schema.ClassInteger && f.Class != schema.ClassBytes
}

func (f *Field) bounds(k int) (lo, hi int32) {
	switch {
	case f.Class == schema.ClassQuat && k == 0:
		return 0, 3
	case f.Class == schema.ClassBytes && k > 0:
		return -1 << 31, 1<<31 - 1
	}
	return f.Lo, f.Hi
}

// Schema describes the fields of objects. It is immutable and safe for concurrent use.
type Schema struct {
	fields      []Field
	at          []int // first component of each field
	ints        int
	lows, highs []int32    // bounds of the components
	order       []int      // predicted fields in the order of coding: orientations, numbers, angles
	moving      []interval // components of the predicted fields
	packing     rowpack.Layout
	anchor      int              // the field that is the position, or -1
	positions   interval         // components of the anchor
	flags       []int            // fields of class ClassInteger
	flagAt      int              // component of the first field of flags, or -1
	flagLow     int32            // minimum of the component flagAt
	grains      []quat.Quantizer // quantizers of the fields of class ClassQuat
	orientation int              // first field of class ClassQuat, or -1
	strings     []int            // fields of class ClassBytes
	layout      layout
	built       sync.Once
	builtIn     *modelSet // derived from the prior by defaultModel
}

// NewSchema returns a schema of 1 to 32 fields with at most 128 components. The first field of
// class ClassNumber is the position of an object, and the first of class ClassQuat its orientation.
// An error names the invalid field.
func NewSchema(fields ...Field) (*Schema, error) {
	s := &Schema{fields: append([]Field(nil), fields...), anchor: -1, flagAt: -1, orientation: -1}
	for i, f := range fields {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("snapshot: field %q: %w", f.Name, err)
		}
		switch f.Class {
		case schema.ClassNumber:
			if s.anchor < 0 {
				s.anchor, s.positions = i, interval{s.ints, s.ints + f.N}
			}
		case schema.ClassQuat:
			if s.orientation < 0 {
				s.orientation = i
			}
			s.grains = append(s.grains, quat.NewQuantizer(f.Lo, f.Hi))
		case schema.ClassInteger:
			if len(s.flags) == 0 {
				s.flagAt, s.flagLow = s.ints, f.Lo
			}
			s.flags = append(s.flags, i)
		case schema.ClassBytes:
			s.strings = append(s.strings, i)
		default:
		}
		s.at = append(s.at, s.ints)
		for k := range f.N {
			lo, hi := f.bounds(k)
			s.lows, s.highs = append(s.lows, lo), append(s.highs, hi)
		}
		if f.predicted() {
			s.moving = appendInterval(s.moving, s.ints, f.N)
		}
		if s.ints += f.N; s.ints > maxComponents {
			return nil, fmt.Errorf("snapshot: field %q: %d components up to it, want at most %d", f.Name, s.ints, maxComponents)
		}
	}
	if len(fields) == 0 || len(fields) > maxFields {
		return nil, fmt.Errorf("snapshot: %d fields, want 1 to %d", len(fields), maxFields)
	}
	for _, class := range []schema.Class{schema.ClassQuat, schema.ClassNumber, schema.ClassAngle} {
		for i, f := range fields {
			if f.Class == class {
				s.order = append(s.order, i)
			}
		}
	}
	s.layout, s.packing = s.newLayout(), rowpack.New(s.lows, s.highs)
	return s, nil
}

// Components returns the number of components of an object.
func (s *Schema) Components() int { return s.ints }

// Fields returns the fields. The schema owns the slice; do not modify it.
func (s *Schema) Fields() []Field { return s.fields }

type interval struct{ from, to int }

// appendInterval appends the interval of n components that starts at at. It extends the last
// interval if that ends there.
func appendInterval(s []interval, at, n int) []interval {
	if k := len(s) - 1; k >= 0 && s[k].to == at {
		s[k].to += n
		return s
	}
	return append(s, interval{at, at + n})
}

func (s *Schema) differ(a, b []int32) bool {
	for _, r := range s.moving {
		a, b := a[r.from:r.to], b[r.from:r.to]
		b = b[:len(a)]
		for k, v := range a {
			if v != b[k] {
				return true
			}
		}
	}
	return false
}

// flagOf returns 1 if the first integer field of a row is not at its minimum.
func (s *Schema) flagOf(row []int32) int {
	if s.flagAt >= 0 && row[s.flagAt] != s.flagLow {
		return 1
	}
	return 0
}

// position returns the position in a row. Missing components are 0.
func (s *Schema) position(row []int32) (x, y, z int64) {
	switch row = row[s.positions.from:s.positions.to]; len(row) {
	case 3:
		return int64(row[0]), int64(row[1]), int64(row[2])
	case 2:
		return int64(row[0]), int64(row[1]), 0
	case 1:
		return int64(row[0]), 0, 0
	}
	return 0, 0, 0
}

func (s *Schema) check(id uint16, row []int32) error {
	lows, highs := s.lows[:len(row)], s.highs[:len(row)]
	for k, v := range row {
		if v < lows[k] || v > highs[k] {
			i, found := slices.BinarySearch(s.at, k)
			if !found {
				i--
			}
			return fmt.Errorf("snapshot: object %d: field %q: component %d, want %d to %d", id, s.fields[i].Name, v, lows[k], highs[k])
		}
	}
	for _, i := range s.strings {
		f := &s.fields[i]
		if c := row[s.at[i] : s.at[i]+f.N]; !padded(c) {
			return fmt.Errorf("snapshot: object %d: field %q: bytes beyond its %d, want zeros", id, f.Name, c[0])
		}
	}
	return nil
}

// padded reports whether the bytes beyond the length of a byte string are zero.
func padded(c []int32) bool {
	n := int(c[0])
	words := c[1:]
	if n%4 != 0 && uint32(words[n/4])>>(8*(n%4)) != 0 {
		return false
	}
	for _, v := range words[(n+3)/4:] {
		if v != 0 {
			return false
		}
	}
	return true
}

func (s *Schema) newLayout() (l layout) {
	take := func(n int) int {
		l.size += n
		return l.size - n
	}
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			l.numbers = append(l.numbers, take(numberKinds*integerSize))
		case schema.ClassQuat:
			l.turns = append(l.turns, take(turnSize))
		case schema.ClassAngle:
			l.angles = append(l.angles, take(integerSize))
		case schema.ClassBytes:
			l.strings = append(l.strings, take(stringSize))
		default:
			l.flags = append(l.flags, take(flagContexts+2))
		}
		l.same = append(l.same, take(sameSize))
	}
	l.changed, l.disturbed, l.how, l.quiet, l.removed = take(256), take(4*contactContexts), take(2*contactContexts), take(3), take(2)
	l.added, l.gap, l.physics = take(slots), take(slots), take(slots)
	return l
}

// start returns the probabilities of a model that has learned nothing.
func (s *Schema) start() []prob {
	l := &s.layout
	p := make([]prob, l.size)
	for i := range p {
		p[i] = even
	}
	for _, at := range l.numbers {
		for k := range numberKinds {
			startInteger(p[at+k*integerSize:])
		}
	}
	for _, at := range l.turns {
		for k := range 2 {
			startInteger(p[at+largestSize+k*integerSize:])
		}
	}
	for _, at := range l.angles {
		startInteger(p[at:])
	}
	startLength(p[l.added:], addedLevel)
	startLength(p[l.gap:], gapLevel)
	startLength(p[l.physics:], physicsLevel)
	return p
}

// newModel returns a model that has learned nothing.
func (s *Schema) newModel() *model {
	m := &model{start: s.start()}
	for i := range s.fields {
		switch s.fields[i].Class {
		case schema.ClassNumber:
			m.motion = append(m.motion, newMotionWeights())
		case schema.ClassQuat:
			m.turns = append(m.turns, newTurnWeights())
		default:
		}
	}
	return m
}

// GroupFrom returns a group whose first snapshot is n. It must not be copied after first use.
func (s *Schema) GroupFrom(n uint64) Group { return Group{schema: s, first: n, next: n} }

// NewSet returns an empty set.
func (s *Schema) NewSet() *Set { return &Set{schema: s} }

// checkNext checks the id of an object that follows others, and the length of its row.
func (s *Schema) checkNext(objects []Object, o Object, row []int32) error {
	switch n := len(objects); {
	case n > 0 && objects[n-1].ID >= o.ID:
		return fmt.Errorf("snapshot: object %d after object %d: want ascending ids", o.ID, objects[n-1].ID)
	case len(row) != s.ints:
		return fmt.Errorf("snapshot: object %d: %d components, want %d", o.ID, len(row), s.ints)
	}
	return nil
}

// Unpack stores a row in a frame of the schema from which s was derived. The frame then shares the
// row's memory.
func (s *Schema) Unpack(f *schema.Frame, row []int32) {
	f.Ints = row[:len(f.Ints)]
	for n, i := range s.strings {
		at := s.at[i]
		f.Bytes[n] = appendBytes(f.Bytes[n][:0], row[at:at+s.fields[i].N])
	}
}

// NewGroupDecoder returns a decoder of groups.
func (s *Schema) NewGroupDecoder() *GroupDecoder {
	d := &GroupDecoder{empty: s.NewSet(), base: Set{schema: s}}
	for i := range d.old {
		d.old[i].schema = s
	}
	d.codec.init(s, true)
	return d
}

func (s *Schema) newOrigin(initial *Set) origin {
	o := origin{initial: s.NewSet(), empty: s.NewSet(), model: defaultModel(s)}
	if initial != nil {
		o.initial.objects, o.initial.ids, o.initial.ints, o.initial.shared = initial.objects, initial.ids, initial.ints, true
	}
	o.initialHash, o.emptyHash = o.initial.hash(), o.empty.hash()
	return o
}
