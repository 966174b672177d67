package perplayer

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// objectSchema describes the fields of objects.
type objectSchema struct {
	fields      []snapshot.Field
	at          []int // first component of each field
	ints        int
	order       []int            // fields that are predicted: orientations, numbers
	moving      []interval       // components of the fields that are predicted
	anchor      int              // the field that is the position, or -1
	positions   interval         // components of the anchor
	flags       []int            // fields of class ClassInteger
	grains      []quat.Quantizer // of the fields of class ClassQuat
	orientation int              // first field of class ClassQuat, or -1
}

// newSchema returns the schema of objects with orientations, numbers and integers.
func newSchema(of *snapshot.Schema) (*objectSchema, error) {
	s := &objectSchema{fields: of.Fields(), anchor: -1, orientation: -1}
	for i, f := range s.fields {
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
			s.flags = append(s.flags, i)
		default:
			return nil, fmt.Errorf("perplayer: field %q is neither an orientation nor a number nor an integer", f.Name)
		}
		s.at = append(s.at, s.ints)
		if predicted(&f) {
			s.moving = appendInterval(s.moving, s.ints, f.N)
		}
		s.ints += f.N
	}
	for _, class := range []schema.Class{schema.ClassQuat, schema.ClassNumber} {
		for i, f := range s.fields {
			if f.Class == class {
				s.order = append(s.order, i)
			}
		}
	}
	return s, nil
}

// predicted reports whether the codec predicts the field. Others are kept or replaced.
func predicted(f *snapshot.Field) bool { return f.Class != schema.ClassInteger }

func bounds(f *snapshot.Field, k int) (lo, hi int32) {
	if f.Class == schema.ClassQuat && k == 0 {
		return 0, 3
	}
	return f.Lo, f.Hi
}

type interval struct{ from, to int }

// appendInterval appends n components from at on. It extends the last interval if they follow it.
func appendInterval(s []interval, at, n int) []interval {
	if k := len(s) - 1; k >= 0 && s[k].to == at {
		s[k].to += n
		return s
	}
	return append(s, interval{at, at + n})
}

func (s *objectSchema) differ(a, b []int32) bool {
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

// position returns the position in a row. Missing components are 0.
func (s *objectSchema) position(row []int32) (p [3]int64) {
	row = row[s.positions.from:s.positions.to]
	if len(row) == 3 {
		return [3]int64{int64(row[0]), int64(row[1]), int64(row[2])}
	}
	for k, v := range row {
		p[k] = int64(v)
	}
	return p
}
