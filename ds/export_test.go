package ds

import "github.com/uplink-rpc/uplink/internal/rpcdelta"

// BreakDecoder makes the decoder of an RPC panic with the next payload of a player.
func (p *Player) BreakDecoder(rpc int) {
	p.bindings.Lock()
	defer p.bindings.Unlock()
	*p.bindings.at(rpc).dec = rpcdelta.Decoder{}
}

// Shards returns the number of shards.
func (s *Server) Shards() int { return len(s.shards) }
