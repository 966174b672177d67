package budget

import (
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/schema"
)

// Sizes in bytes, measured.
const (
	schemaSize    = 2 << 10
	schemaPerByte = 10 // of the file
	priorSize     = 80 << 10
	priorPerByte  = 14 // of the file
	modelSize     = 8 << 10
	perComponent  = 360 // of a model
	perField      = 512 // of a model
)

// Schema parses a schema file, for which it takes memory first.
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

// Prior parses a prior's file, for which it takes memory first.
func (b *Budget) Prior(file []byte) (*prior.Prior, error) {
	if err := b.Take(priorSize + priorPerByte*len(file)); err != nil {
		return nil, err
	}
	return prior.Parse(file)
}

// Model is the size of a schema that is compiled for a prior.
func Model(s *schema.Schema) int {
	return modelSize + perComponent*s.Components() + perField*len(s.Fields())
}
