// Package objectfields derives the fields of replicated objects from a schema.
package objectfields

import (
	"math"

	"github.com/uplink-rpc/uplink/schema"
)

// Field is a snapshot.Field, which documents it.
type Field struct {
	Name   string
	Class  schema.Class
	N      int
	Lo, Hi int32
}

// Of returns the fields of objects with the fields of a schema: those of the Ints of a frame, then
// its byte strings.
func Of(s *schema.Schema) []Field {
	var fields, strings []Field
	layouts := s.Layouts()
	for i := range layouts {
		if l := &layouts[i]; l.Class == schema.ClassBytes {
			strings = append(strings, Field{l.Field.Name, schema.ClassBytes, Bytes(l.MaxBytes), int32(l.MinBytes), int32(l.MaxBytes)})
		} else {
			fields = appendFields(fields, l)
		}
	}
	return append(fields, strings...)
}

// Bytes returns the number of components of a byte string of at most n bytes.
func Bytes(n int) int { return 1 + (n+3)/4 }

// appendFields appends the fields of the components of l: at most 3 components of numbers or angles
// each, and 1 of integers. Integers that need all 32 bits are in two's complement, as in a frame.
func appendFields(fields []Field, l *schema.Layout) []Field {
	f := Field{Name: l.Field.Name, Class: l.Class, N: l.N, Lo: l.Lo, Hi: l.Hi}
	limit := 3
	switch l.Class {
	case schema.ClassQuat:
		limit = 4
	case schema.ClassInteger:
		limit = 1
	default:
	}
	for at := 0; at < l.N; at += f.N {
		f.N = min(l.N-at, limit)
		if f.Class == schema.ClassInteger {
			lo, hi := l.ComponentRange(at)
			if hi > math.MaxInt32 {
				lo, hi = math.MinInt32, math.MaxInt32
			}
			f.Lo, f.Hi = int32(lo), int32(hi)
		}
		fields = append(fields, f)
	}
	return fields
}
