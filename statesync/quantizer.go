package statesync

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/snapshot"
)

// Quantizer ties a game's struct, tagged as for an RPC, to the rows that go over the wire. Before each step of the
// simulation both ends call Round on every object: then what the sender simulates on from is, bit for bit, what the
// receiver has when it takes the update. Not safe for concurrent use.
type Quantizer[T any] struct {
	kind       *snapshot.Type[T]
	velocities []schema.Velocity
	row        []int32
}

// NewQuantizer makes a quantizer of T, of which name is for errors, in a simulation of so many ticks a second. An error
// names the field that is wrong, see [snapshot.Compile].
func NewQuantizer[T any](name string, ticksPerSecond float64) (*Quantizer[T], error) {
	kind, err := snapshot.Compile[T](name)
	if err != nil {
		return nil, err
	}
	rpc, err := kind.Source().AtRate(ticksPerSecond)
	if err != nil {
		return nil, err
	}
	q := &Quantizer[T]{kind: kind, row: make([]int32, kind.Schema().Components())}
	q.velocities, err = rpc.Velocities()
	return q, err
}

// Schema describes T's rows.
func (q *Quantizer[T]) Schema() *snapshot.Schema { return q.kind.Schema() }

// Velocities are those that T's tags declare, for a [Config].
func (q *Quantizer[T]) Velocities() []schema.Velocity { return q.velocities }

// Round rounds v as if it had been sent. What is rounded stays so when it is rounded again, and is what [Quantizer.Restore]
// gives for its row. A value that its field cannot hold is a [*schema.RangeError], with v
// unchanged. It allocates nothing, but for byte strings and what goes through msgpack.
func (q *Quantizer[T]) Round(v *T) error {
	if err := q.kind.Quantize(q.row, v); err != nil {
		return err
	}
	at := 0
	for _, f := range q.Schema().Fields() {
		if f.Class == schema.ClassQuat {
			lean(q.row[at+1:at+4], int64(f.Hi))
		}
		at += f.N
	}
	return q.kind.Restore(v, q.row)
}

// lean has the largest element of an orientation stay the largest where rounding made another one larger: a step less of
// that. c are the others, of which limit is 1 / sqrt 2.
func lean(c []int32, limit int64) {
	for {
		left, most := 2*limit*limit, 0
		for i, v := range c {
			left -= int64(v) * int64(v)
			if fixed.Abs(int64(v)) > fixed.Abs(int64(c[most])) {
				most = i
			}
		}
		switch v := int64(c[most]); {
		case v*v < left:
			return
		case v > 0:
			c[most]--
		default:
			c[most]++
		}
	}
}

// Add adds v to the end of a set, see [snapshot.Set.Add]. Errors are its and those of Round.
func (q *Quantizer[T]) Add(set *snapshot.Set, o snapshot.Object, v *T) error {
	if err := q.kind.Quantize(q.row, v); err != nil {
		return err
	}
	return set.Add(o, q.row)
}

// Restore writes a row's values into v.
func (q *Quantizer[T]) Restore(v *T, row []int32) error {
	if len(row) != len(q.row) {
		return fmt.Errorf("statesync: row of %d components, want %d", len(row), len(q.row))
	}
	return q.kind.Restore(v, row)
}
