// Package budget limits the memory for the contents of untrusted files.
package budget

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Default is the limit of commands that read captures, in bytes. Including the reader, they use
// less than 48 MiB.
const Default = 32 << 20

// Budget is an amount of memory. Sizes are conservative estimates. Not safe for concurrent use.
type Budget struct {
	limit, left int64 // bytes
}

// New returns a budget in bytes; 0 means [Default].
func New(bytes int64) *Budget {
	if bytes == 0 {
		bytes = Default
	}
	return &Budget{limit: bytes, left: bytes}
}

// Error reports that a budget is used up.
type Error struct{ Limit int64 }

// Error names the limit.
func (e *Error) Error() string {
	return fmt.Sprintf("the contents of the file exceed the memory limit of %d bytes; --memory raises it", e.Limit)
}

// Take reserves bytes. If fewer are left, it reserves none and returns an [Error].
func (b *Budget) Take(bytes int) error { return b.take(bytes, 0) }

// TakeMost is Take for the largest part of a file's needs. It leaves at least a quarter of the
// budget.
func (b *Budget) TakeMost(bytes int) error { return b.take(bytes, b.limit/4) }

func (b *Budget) take(bytes int, leave int64) error {
	if int64(bytes) > b.left-leave {
		return &Error{b.limit}
	}
	b.left -= int64(bytes)
	return nil
}

// Return releases reserved bytes.
func (b *Budget) Return(bytes int) { b.left += int64(bytes) }

// Sizes in bytes, measured.
const (
	schemaSize    = 2 << 10
	schemaPerByte = 10 // bytes per byte of the file
	priorSize     = 80 << 10
	priorPerByte  = 14 // bytes per byte of the file
	modelSize     = 8 << 10
	perComponent  = 360 // bytes per component of a model
	perField      = 512 // bytes per field of a model
)

// Schema reserves memory for a schema file and parses it.
func (b *Budget) Schema(file []byte) (*schema.Schema, error) {
	if err := b.Take(schemaSize + schemaPerByte*len(file)); err != nil {
		return nil, err
	}
	s, err := schema.Parse(file)
	if err != nil {
		return nil, err
	}
	return s, b.Take(Model(s))
}

// Prior reserves memory for the file of a prior and parses it.
func (b *Budget) Prior(file []byte) (*prior.Prior, error) {
	if err := b.Take(priorSize + priorPerByte*len(file)); err != nil {
		return nil, err
	}
	return prior.Parse(file)
}

// Model returns the size of a schema's model, in bytes.
func Model(s *schema.Schema) int {
	return modelSize + perComponent*s.Components() + perField*len(s.Fields())
}
