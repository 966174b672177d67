package ds

import (
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

// RPCProfile counts the bits of an RPC's payloads by field, of both channels.
type RPCProfile struct {
	RPC    string
	Schema *schema.Schema
	inspect.Profile
}

// decode decodes a payload, and measures some of them. The choice is random, as players send in
// turn.
func (s *Server) decode(b *binding, payload []byte) ([]rpcdelta.Delivery, error) {
	profiling := s.profiling.Load()
	run, every := profiling>>32, uint32(profiling)
	if every == 0 || b.version.conversion != nil { // profiles are of the server's fields
		return b.dec.Decode(payload)
	}
	p := &b.here.profiler
	if p.left = min(p.left, 2*every); p.left > 1 {
		p.left--
		return b.dec.Decode(payload)
	}
	p.left = 1 + rand.Uint32N(2*every-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profile == nil || p.run != run {
		p.profile, p.run = inspect.NewProfile(b.rpc.schema), run
	}
	b.dec.Measure(p.profile)
	defer b.dec.Measure(nil)
	return b.dec.Decode(payload)
}
