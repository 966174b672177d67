package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
)

// Schema is the typed description of an object. It is immutable and safe for concurrent use.
type Schema struct {
	fields  []Field
	at      []int // first component of each field
	ints    int
	order   []int            // fields that are predicted, orientations before numbers
	moving  []stretch        // components of fields that are predicted
	anchor  int              // the field whose place says which objects are near each other, or -1
	places  stretch          // its components
	flags   []int            // fields of kind Flags
	grains  []quat.Quantizer // of the fields of kind Quat
	lie     int              // the field that says how objects lie, or -1
	strings []int            // fields of kind Bytes
}

// NewSchema checks fields. The error names the one that is wrong, and how.
func NewSchema(fields ...Field) (*Schema, error) {
	s := &Schema{fields: append([]Field(nil), fields...), anchor: -1, lie: -1}
	for i, f := range fields {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("snapshot: field %q: %w", f.Name, err)
		}
		switch f.Kind {
		case Motion:
			if s.anchor < 0 {
				s.anchor, s.places = i, stretch{s.ints, s.ints + f.N}
			}
		case Quat:
			if s.lie < 0 {
				s.lie = i
			}
			s.grains = append(s.grains, quat.NewQuantizer(f.Lo, f.Hi))
		case Flags:
			s.flags = append(s.flags, i)
		case Bytes:
			s.strings = append(s.strings, i)
		default:
		}
		s.at = append(s.at, s.ints)
		if f.moves() {
			s.moving = stretched(s.moving, s.ints, f.N)
		}
		if s.ints += f.N; s.ints > MaxComponents {
			return nil, fmt.Errorf("snapshot: field %q: %d components up to it, want at most %d", f.Name, s.ints, MaxComponents)
		}
	}
	if len(fields) == 0 || len(fields) > MaxFields {
		return nil, fmt.Errorf("snapshot: %d fields, want 1 to %d", len(fields), MaxFields)
	}
	for _, kind := range []Kind{Quat, Motion, Angle} {
		for i, f := range fields {
			if f.Kind == kind {
				s.order = append(s.order, i)
			}
		}
	}
	return s, nil
}

// Components is the number of integers of an object.
func (s *Schema) Components() int { return s.ints }

// Fields gives the fields; the slice is the schema's own: read it only.
func (s *Schema) Fields() []Field { return s.fields }

// Fingerprint is a hash of the fields: equal for schemas whose sets mean the same to both ends, but for the unit of a
// step, which a schema does not know.
func (s *Schema) Fingerprint() uint64 {
	h := fnv.New64a()
	for i := range s.fields {
		f := &s.fields[i]
		_, _ = io.WriteString(h, f.Name)
		_ = binary.Write(h, binary.LittleEndian, [4]int32{int32(f.Kind), int32(f.N), f.Lo, f.Hi})
	}
	return h.Sum64()
}

// stretch is components of a row that follow each other.
type stretch struct{ from, to int }

// stretched appends n components from at on, to the last stretch if they follow it.
func stretched(s []stretch, at, n int) []stretch {
	if k := len(s) - 1; k >= 0 && s[k].to == at {
		s[k].to += n
		return s
	}
	return append(s, stretch{at, at + n})
}

// differ says whether components of fields that are predicted differ.
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

// place gives the anchor's components of a row.
func (s *Schema) place(row []int32) (p [3]int64) {
	row = row[s.places.from:s.places.to]
	if len(row) == 3 {
		return [3]int64{int64(row[0]), int64(row[1]), int64(row[2])}
	}
	for k, v := range row {
		p[k] = int64(v)
	}
	return p
}

// check says whether a row is within bounds.
func (s *Schema) check(id uint16, row []int32) error {
	for i := range s.fields {
		f := &s.fields[i]
		c := row[s.at[i] : s.at[i]+f.N]
		for k, v := range c {
			if lo, hi := f.bounds(k); v < lo || v > hi {
				return &RangeError{id, f.Name, v, lo, hi}
			}
		}
		if f.Kind == Bytes && !padded(c) {
			return fmt.Errorf("snapshot: object %d: field %q: bytes beyond its %d, want zeros", id, f.Name, c[0])
		}
	}
	return nil
}
