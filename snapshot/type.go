package snapshot

import (
	"fmt"

	"github.com/uplink-rpc/uplink/schema"
)

// Type ties a Go struct to the schema of its objects: it moves values of T into rows and back. Reflection happens once,
// in [Compile]. Not safe for concurrent use: give each goroutine its own by [Type.Clone].
type Type[T any] struct {
	rpc    *schema.Type[T]
	schema *Schema
	ints   int // numbers of a row; byte strings follow
	frame  *schema.Frame
	row    []int32
}

// Compile derives the schema of objects from the fields of T, a struct of the same tags and types as an RPC's, see
// [schema.Compile] and [Of]. name is what errors call the object. An error names the field that is wrong.
func Compile[T any](name string) (*Type[T], error) {
	rpc, err := schema.Compile[T](name, 0)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	s, err := Of(rpc.Schema())
	if err != nil {
		return nil, err
	}
	t := &Type[T]{rpc: rpc, schema: s}
	return t.Clone(), nil
}

// Clone gives a Type that shares what was compiled.
func (t *Type[T]) Clone() *Type[T] {
	frame := t.rpc.Schema().NewFrame()
	return &Type[T]{t.rpc, t.schema, len(frame.Ints), frame, make([]int32, t.schema.ints)}
}

// Schema describes rows.
func (t *Type[T]) Schema() *Schema { return t.schema }

// Source is the schema that T's fields and tags describe: kinds, resolutions, and which field is which other's
// velocity. Ends whose Sources have the same Fingerprint mean the same by a row.
func (t *Type[T]) Source() *schema.Schema { return t.rpc.Schema() }

// Quantize writes v into row, of [Schema.Components] integers. A value that its field cannot hold is a
// [*schema.RangeError] that names it, and the row is then undefined. It allocates nothing, but for fields that go
// through msgpack.
func (t *Type[T]) Quantize(row []int32, v *T) error {
	t.frame.Ints = row[:t.ints]
	if err := t.rpc.Quantize(t.frame, v); err != nil {
		return err
	}
	for n, i := range t.schema.strings {
		at := t.schema.at[i]
		putBytes(row[at:at+t.schema.fields[i].N], t.frame.Bytes[n])
	}
	return nil
}

// Restore writes what row holds into v: numbers within half a step of what was quantized. Byte slices are overwritten
// in place; strings and fields that go through msgpack are made anew where they differ.
func (t *Type[T]) Restore(v *T, row []int32) error {
	t.frame.Ints = row[:t.ints]
	for n, i := range t.schema.strings {
		at := t.schema.at[i]
		t.frame.Bytes[n] = appendBytes(t.frame.Bytes[n][:0], row[at:at+t.schema.fields[i].N])
	}
	return t.rpc.Restore(v, t.frame)
}

// Add quantizes v and adds it to the end of the set, see [Set.Add]. A value that its field cannot hold is an error that
// names object and field, and wraps a [*schema.RangeError]; the set is as it was after an error.
func (t *Type[T]) Add(set *Set, o Object, v *T) error {
	if err := t.Quantize(t.row, v); err != nil {
		return fmt.Errorf("snapshot: object %d: %w", o.ID, err)
	}
	return set.Add(o, t.row)
}

// Get restores object number i of the set into v.
func (t *Type[T]) Get(v *T, set *Set, i int) error { return t.Restore(v, set.Row(i)) }
