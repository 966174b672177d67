package replication

import (
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/snapshot"
	"github.com/uplink-rpc/uplink/internal/versions"
)

// ParseFields parses the descriptions of fields in an offer. It returns the schema of these fields,
// and the schema of the rows of objects. Any input is safe.
func ParseFields(name string, descriptions []string) (*schema.Schema, *snapshot.Schema, error) {
	source, err := versions.Parse(name, descriptions)
	if err != nil {
		return nil, nil, err
	}
	s, err := snapshot.SchemaOf(source)
	return source, s, err
}
