package statesync

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/quat"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/schema"
)

// Quantizer converts between values of the Go struct T, with tags as for an RPC, and rows of
// components. Both ends call Round for every object before each step of the simulation: the sender
// then simulates from exactly the state that the receiver decodes. Not safe for concurrent use.
type Quantizer[T any] struct {
	kind       *snapshot.Type[T]
	velocities []schema.Velocity
	row        []int32
}

// NewQuantizer returns a quantizer of T for a simulation of ticksPerSecond. name is the name of the
// objects in errors. An error names the invalid field, see [snapshot.Compile].
func NewQuantizer[T any](name string, ticksPerSecond float64) (*Quantizer[T], error) {
	kind, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	rpc, err := kind.Source().AtRate(ticksPerSecond)
	if err != nil {
		return nil, err
	}
	return &Quantizer[T]{kind: kind, row: make([]int32, kind.Schema().Components()), velocities: rpc.Velocities()}, nil
}

// Schema returns the schema of the rows.
func (q *Quantizer[T]) Schema() *snapshot.Schema { return q.kind.Schema() }

// Velocities returns the velocities that the tags of T declare, for a [Config].
func (q *Quantizer[T]) Velocities() []schema.Velocity { return q.velocities }

// Round rounds v to the values that a receiver would decode. Rounding again changes nothing. A
// value that its field cannot hold is a [*schema.RangeError], with v unchanged. Only byte strings
// and fields that are encoded as msgpack allocate.
func (q *Quantizer[T]) Round(v *T) error {
	if err := q.kind.Quantize(q.row, v); err != nil {
		return err
	}
	at := 0
	for _, f := range q.Schema().Fields() {
		if f.Class == schema.ClassQuat {
			quat.FixLargest(q.row[at+1:at+4], int64(f.Hi))
		}
		at += f.N
	}
	return q.kind.Restore(v, q.row)
}

// Add quantizes v and appends it to a set, see [snapshot.Set.Add].
func (q *Quantizer[T]) Add(set *snapshot.Set, o snapshot.Object, v *T) error {
	if err := q.kind.Quantize(q.row, v); err != nil {
		return err
	}
	return set.Add(o, q.row)
}

// Restore writes the values of a row to v.
func (q *Quantizer[T]) Restore(v *T, row []int32) error {
	if len(row) != len(q.row) {
		return fmt.Errorf("statesync: row of %d components, want %d", len(row), len(q.row))
	}
	return q.kind.Restore(v, row)
}
