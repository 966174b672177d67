package statesync

import "github.com/uplink-rpc/uplink/internal/snapshot"

// Quantizer rounds values of the Go struct T, with tags as for an RPC. Both ends call Round for
// every object before each step of the simulation: the sender then simulates from exactly the state
// that the receiver decodes. Not safe for concurrent use.
type Quantizer[T any] struct{ typ *snapshot.Type[T] }

// NewQuantizer returns a quantizer of T for a simulation of ticksPerSecond. name is the name of the
// objects in errors. An error names the invalid field, or the field that exceeds the limit of 32
// fields or 128 components.
func NewQuantizer[T any](name string, ticksPerSecond float64) (*Quantizer[T], error) {
	typ, _, err := configure[T](name, ticksPerSecond, Config{})
	if err != nil {
		return nil, err
	}
	return &Quantizer[T]{typ}, nil
}

// Round rounds v to the values that a receiver would decode. Rounding again changes nothing. A
// value that its field cannot hold is a *schema.RangeError, with v unchanged. Only byte strings and
// fields that are encoded as msgpack allocate.
func (q *Quantizer[T]) Round(v *T) error { return q.typ.Round(v) }
