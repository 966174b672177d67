package way

import (
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/snapshot"
)

// rows moves cubes, described by a T, into sets and back.
type rows[T any] struct {
	typ    *rpcdelta.Type[T]
	schema *snapshot.Schema
	frame  *rpcdelta.Frame
}

func newRows[T any]() (rows[T], error) {
	t, err := rpcdelta.Compile[T]("Cube", 0)
	if err != nil {
		return rows[T]{}, err
	}
	s, err := snapshot.Of(t.Schema())
	return rows[T]{typ: t, schema: s, frame: t.Schema().NewFrame()}, err
}

// add puts cube i at the end of a set.
func (r *rows[T]) add(set *snapshot.Set, i int, v *T) error {
	if err := r.typ.Quantize(r.frame, v); err != nil {
		return err
	}
	return set.Add(snapshot.Object{ID: uint16(i)}, r.frame.Ints)
}

// get restores the object of that number.
func (r *rows[T]) get(v *T, set *snapshot.Set, i int) error {
	copy(r.frame.Ints, set.Row(i))
	return r.typ.Restore(v, r.frame)
}
