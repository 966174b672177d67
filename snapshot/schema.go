package snapshot

import (
	"errors"
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// Limits of a schema.
const (
	// MaxFields is the most fields that an object may have.
	MaxFields = 16
	// MaxComponents is the most integers that an object may have.
	MaxComponents = 64
)

// Kind says how a field's components are predicted.
type Kind uint8

const (
	// Motion is one to three numbers that move together: a position, or any other vector or scalar.
	Motion Kind = iota
	// Quat is an orientation as its smallest three: the index of the largest, and the other three, of which Lo and Hi
	// stand for -1/sqrt 2 and 1/sqrt 2.
	Quat
	// Flags is one integer that is kept or replaced: a boolean, an enumeration, a set of bits.
	Flags
)

// Field describes some of an object's components, in integers.
type Field struct {
	Name string
	Kind Kind
	// N is the number of components: 1 to 3 for Motion, 4 for Quat, 1 for Flags.
	N int
	// Lo and Hi bound each of them, but for a Quat's index, 0 to 3. They lie less than 2^31 apart.
	Lo, Hi int32
}

// Schema is the typed description of an object. It is immutable and safe for concurrent use.
type Schema struct {
	fields []Field
	at     []int // first component of each field
	ints   int
	order  []int // fields that are predicted, numbers before orientations
	anchor int   // the field whose place says which objects are near each other, or -1
	flags  int   // fields of kind Flags
	flag   int   // the first of them, or -1
}

// NewSchema checks fields. The error names the one that is wrong, and how.
func NewSchema(fields ...Field) (*Schema, error) {
	if len(fields) == 0 || len(fields) > MaxFields {
		return nil, fmt.Errorf("snapshot: %d fields, want 1 to %d", len(fields), MaxFields)
	}
	s := &Schema{fields: append([]Field(nil), fields...), anchor: -1, flag: -1}
	for i, f := range fields {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("snapshot: field %q: %w", f.Name, err)
		}
		if f.Kind == Motion && s.anchor < 0 {
			s.anchor = i
		}
		if f.Kind == Flags {
			if s.flags++; s.flag < 0 {
				s.flag = i
			}
		}
		s.at = append(s.at, s.ints)
		s.ints += f.N
	}
	for _, kind := range []Kind{Motion, Quat} {
		for i, f := range fields {
			if f.Kind == kind {
				s.order = append(s.order, i)
			}
		}
	}
	if s.ints > MaxComponents {
		return nil, fmt.Errorf("snapshot: %d components, want at most %d", s.ints, MaxComponents)
	}
	return s, nil
}

func (f *Field) check() error {
	switch {
	case f.Name == "":
		return errors.New("a field needs a name")
	case f.Lo > f.Hi || int64(f.Hi)-int64(f.Lo) > math.MaxInt32:
		return fmt.Errorf("bounds %d to %d, want them in order and less than 2^31 apart", f.Lo, f.Hi)
	case f.Kind == Motion && (f.N < 1 || f.N > 3):
		return fmt.Errorf("%d components, want 1 to 3", f.N)
	case f.Kind == Quat && (f.N != 4 || f.Hi-f.Lo < 2 || f.Hi-f.Lo > 1<<20):
		return errors.New("an orientation has 4 components of at most 20 bits")
	case f.Kind == Flags && f.N != 1:
		return fmt.Errorf("%d components, want 1", f.N)
	case f.Kind > Flags:
		return fmt.Errorf("unknown kind %d", f.Kind)
	}
	return nil
}

// Of describes objects by the schema of a struct of the same tags and kinds as an RPC's, as [rpcdelta.Compile] makes
// it: an object's row is its frame's Ints. Fields of more than 31 bits and byte strings are an error that names them.
func Of(rpc *rpcdelta.Schema) (*Schema, error) {
	var fields []Field
	for _, f := range rpc.Fields() {
		own, err := fieldsOf(&f)
		if err != nil {
			return nil, fmt.Errorf("snapshot: %s: field %q: %w", rpc.RPC(), f.Name, err)
		}
		fields = append(fields, own...)
	}
	return NewSchema(fields...)
}

func fieldsOf(f *rpcdelta.Field) ([]Field, error) {
	own := Field{Name: f.Name, N: f.Values()}
	switch f.Kind {
	case rpcdelta.KindQuat:
		own.Kind, own.Hi = Quat, 1<<(f.Bits-1)-1
		own.Lo = -own.Hi
		return []Field{own}, nil
	case rpcdelta.KindUnitVec:
		own.N, own.Hi = 2, 1<<(f.Bits-1)-1
		own.Lo = -own.Hi
		return []Field{own}, nil
	case rpcdelta.KindAngle:
		own.Hi = 1<<f.Bits - 1
	case rpcdelta.KindVec2, rpcdelta.KindVec3, rpcdelta.KindScalar:
		own.Lo, own.Hi = stepsOf(f.Min, f.Resolution, -(1<<23-1)), stepsOf(f.Max, f.Resolution, 1<<23-1)
	case rpcdelta.KindUint, rpcdelta.KindBool, rpcdelta.KindBits, rpcdelta.KindInt:
		if f.Width > 31 {
			return nil, fmt.Errorf("width %d, want at most 31 in a snapshot", f.Width)
		}
		own.Kind, own.Hi = Flags, int32(1<<f.Width-1)
		if f.Kind == rpcdelta.KindInt {
			own.Lo, own.Hi = -(own.Hi/2 + 1), own.Hi/2
		}
	default:
		return nil, errors.New("a snapshot carries no byte strings")
	}
	return own.split(), nil
}

// stepsOf is a bound in steps, by the rule of rpcdelta.
func stepsOf(v *float64, resolution float64, otherwise int32) int32 {
	if v == nil {
		return otherwise
	}
	return int32(math.Floor(float64(*v*(1/resolution)) + 0.5))
}

// split makes fields of as many components as a field of the kind can have.
func (f Field) split() (out []Field) {
	most := 3
	if f.Kind == Flags {
		most = 1
	}
	for left := f.N; left > 0; left -= f.N {
		f.N = min(left, most)
		out = append(out, f)
	}
	return out
}

// Components is the number of integers of an object.
func (s *Schema) Components() int { return s.ints }

// Fields gives the fields; the slice is the schema's own: read it only.
func (s *Schema) Fields() []Field { return s.fields }

// check says whether a row is within bounds.
func (s *Schema) check(id uint16, row []int32) error {
	for i := range s.fields {
		f := &s.fields[i]
		for k, v := range row[s.at[i] : s.at[i]+f.N] {
			lo, hi := f.bounds(k)
			if v < lo || v > hi {
				return &RangeError{id, f.Name, v, lo, hi}
			}
		}
	}
	return nil
}

func (f *Field) bounds(k int) (lo, hi int32) {
	if f.Kind == Quat && k == 0 {
		return 0, 3
	}
	return f.Lo, f.Hi
}
