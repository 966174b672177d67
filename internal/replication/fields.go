package replication

import (
	"github.com/uplink-rpc/uplink/internal/codec/objectfields"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/versions"
	"github.com/uplink-rpc/uplink/schema"
)

// ParseFields parses the descriptions of fields in an offer. It returns a schema with these fields
// and that of the rows of objects. If only the latter is too large, it returns the first with the
// error. Any input is safe.
func ParseFields(name string, descriptions []string) (*schema.Schema, *snapshot.Schema, error) {
	source, err := versions.Parse(name, descriptions)
	if err != nil {
		return nil, nil, err
	}
	var rows []snapshot.Field
	for _, f := range objectfields.Of(source) {
		rows = append(rows, snapshot.Field(f))
	}
	s, err := snapshot.NewSchema(rows...)
	return source, s, err
}
