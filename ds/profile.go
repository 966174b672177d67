package ds

import (
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/schema"
)

// RPCProfile counts the bits of an RPC's payloads by field, of both channels.
type RPCProfile struct {
	RPC    string
	Schema *schema.Schema
	inspect.Profile
}
