// Package randomrow makes random schemas, and objects that move, stop and change at random.
package randomrow

import (
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// Schema returns a schema of 1 to 6 fields of random classes and bounds.
func Schema(r *rand.Rand) *snapshot.Schema {
	var fields []snapshot.Field
	for range 1 + r.IntN(6) {
		f := snapshot.Field{Name: "Field", N: 1, Class: oneOf(r,
			schema.ClassNumber, schema.ClassQuat, schema.ClassAngle, schema.ClassInteger, schema.ClassBytes)}
		f.Lo = oneOf[int32](r, 0, -1<<31, -500, 1<<20)
		f.Hi = f.Lo + oneOf[int32](r, 2, 500, 1<<30)
		switch f.Class {
		case schema.ClassQuat:
			f.N, f.Lo, f.Hi = 4, 0, oneOf[int32](r, 2, 511, 1<<20)
		case schema.ClassBytes:
			f.N, f.Lo, f.Hi = 4, 0, maxString
		case schema.ClassInteger:
		default:
			f.N = 1 + r.IntN(3)
		}
		fields = append(fields, f)
	}
	s, err := snapshot.NewSchema(fields...)
	if err != nil {
		panic(err)
	}
	return s
}

const maxString = 9 // bytes

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// Object contains the components of an object and their speeds.
type Object struct {
	// Row contains the components, in the order of the schema.
	Row []int32

	schema *snapshot.Schema
	speed  []int32
}

// New returns an object at rest.
func New(r *rand.Rand, s *snapshot.Schema) *Object {
	o := &Object{make([]int32, s.Components()), s, make([]int32, s.Components())}
	at := 0
	for _, f := range s.Fields() {
		for k := range f.N {
			o.Row[at+k] = f.Lo + int32(r.Int64N(int64(f.Hi)-int64(f.Lo)+1))
		}
		switch f.Class {
		case schema.ClassQuat:
			o.Row[at] = r.Int32N(4)
		case schema.ClassBytes:
			write(r, o.Row[at:at+f.N])
		default:
		}
		at += f.N
	}
	return o
}

// write replaces a byte string.
func write(r *rand.Rand, c []int32) {
	clear(c)
	c[0] = r.Int32N(maxString + 1)
	for i := range c[0] {
		c[1+i/4] |= int32(uint32(r.IntN(3)) << (8 * (i % 4)))
	}
}

// Step moves the object by its speed. At random, it stops, or changes its speed, the largest
// component of its orientations, or its byte strings.
func (o *Object) Step(r *rand.Rand) {
	change := r.IntN(40)
	if change < 3 {
		clear(o.speed)
	}
	at := 0
	for _, f := range o.schema.Fields() {
		c, v := o.Row[at:at+f.N], o.speed[at:at+f.N]
		at += f.N
		switch {
		case f.Class == schema.ClassBytes:
			if change == 4 {
				write(r, c)
			}
			continue
		case f.Class == schema.ClassQuat && change == 5:
			c[0] = r.Int32N(4)
		}
		for k := range c {
			if change == 6 {
				v[k] = r.Int32N(41) - 20
			}
			if f.Class != schema.ClassQuat || k > 0 {
				c[k] = int32(min(max(int64(c[k])+int64(v[k]), int64(f.Lo)), int64(f.Hi)))
			}
		}
	}
}
