package ds

import (
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// PlayerStats is what was counted for one player since it joined.
type PlayerStats struct {
	// Frames counts the frames that were delivered, those that [Validate] refused too,
	// of all RPCs.
	Frames uint64
	// Missed counts the frames that were never delivered, as far as later ones show.
	Missed uint64
	// Drops counts by reason what was dropped, of RPCs and of none.
	Drops [drops]uint64
	// Transport counts the player's datagrams, and has the round trip.
	Transport transport.Stats
}

// Stats gives what was counted for the player so far.
func (p *Player) Stats() PlayerStats {
	st := PlayerStats{Frames: p.delivered.Load(), Missed: p.missed.Load(), Transport: p.conn.Stats()}
	for i := range p.drops {
		st.Drops[i] = p.drops[i].Load()
	}
	return st
}

// count counts a payload of size bytes, 0 if it was not used to its end, and its frames
// that were delivered.
func (p *Player) count(b *binding, frames []rpcdelta.Delivery, size int, a *arrival) {
	p.delivered.Add(uint64(len(frames)))
	c := b.counts
	if !c.noted {
		c.noted = true
		p.shard.fresh = append(p.shard.fresh, c)
	}
	c.received(frames, size, p.seal, a)
}

// drop counts what belongs to no RPC.
func (p *Player) drop(d Drop) {
	p.drops[d].Add(1)
	p.shard.drop(d)
}

// dropFrame counts a payload or a frame of an RPC, and the frames that are known to
// be missed since.
func (p *Player) dropFrame(b *binding, d Drop, missed uint64) {
	p.drops[d].Add(1)
	p.missed.Add(missed)
	b.counts.drop(d, missed)
}
