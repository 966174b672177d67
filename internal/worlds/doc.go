// Package worlds is what client and server share of a world that goes down as snapshots or as state: what describes it,
// and of snapshots the initial state and what precedes a payload.
package worlds

import "github.com/uplink-rpc/uplink/schema"

// Codec is the name of snapshots in offers.
const Codec = "snapshot"

// Fields returns a description of each field of an object, for offers.
func Fields(s *schema.Schema) (fields []string) {
	for _, f := range s.Fields() {
		fields = append(fields, f.String())
	}
	return fields
}
