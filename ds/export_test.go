package ds

import "github.com/uplink-rpc/uplink/rpcdelta"

// BreakDecoder makes the decoder of an RPC panic with the next payload of a player.
func (p *Player) BreakDecoder(rpc int) {
	p.acks.Lock()
	defer p.acks.Unlock()
	*p.binding(rpc).dec = rpcdelta.Decoder{}
}
