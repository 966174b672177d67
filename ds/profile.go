package ds

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// RPCProfile counts the bits of an RPC's payloads by field, of both channels.
type RPCProfile struct {
	RPC    string
	Schema *schema.Schema
	rpcdelta.Profile
}
