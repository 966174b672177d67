package ds

import (
	"maps"
	"slices"

	"github.com/uplink-rpc/uplink/transport"
)

// ReplicationStats counts what goes down of a world: to one player, or to all that there were.
type ReplicationStats struct {
	// Name is the world's.
	Name string
	// Players is how many there are now whom it was offered to, Ready how many of them it is sent to.
	Players, Ready int
	// Messages counts what was sent, of snapshots each one, Acked those of them that are known to have come, Unsent those
	// that could not be sent: snapshots that were too large, state of which no object fits the bandwidth.
	Messages, Acked, Unsent uint64
	// Updates counts the objects that messages of state updated or said to be gone, Starts how often state began anew since
	// too long nothing was acked, or the client had lost track.
	Updates, Resets uint64
	// Fragmented counts those of the messages that took several datagrams, Datagrams all datagrams.
	Fragmented, Datagrams uint64
	// Bytes is what the datagrams carried, AEADBytes what their seals took beside that.
	Bytes, AEADBytes uint64
	// InitialBytes is what was sent of initial states, over the reliable channel.
	InitialBytes uint64
	// AckBytes is what the acks took that came, without headers, InvalidAcks how many of these no honest client sends.
	AckBytes, InvalidAcks uint64
	// Age is how many ticks before the last message its baseline was: of several players the most. 0 where the last
	// message had none.
	BaselineAge uint64
}

func (st *ReplicationStats) add(o *ReplicationStats) {
	st.Messages += o.Messages
	st.Acked += o.Acked
	st.Unsent += o.Unsent
	st.Updates += o.Updates
	st.Resets += o.Resets
	st.Fragmented += o.Fragmented
	st.Datagrams += o.Datagrams
	st.Bytes += o.Bytes
	st.AEADBytes += o.AEADBytes
	st.InitialBytes += o.InitialBytes
	st.AckBytes += o.AckBytes
	st.InvalidAcks += o.InvalidAcks
}

// WireBytes is all that the datagrams took, seals and headers down to IP included.
func (st *ReplicationStats) WireBytes() uint64 {
	return st.Bytes + st.AEADBytes + st.Datagrams*(transport.IPSize+transport.HeaderSize)
}

// counted gives what was counted for one player.
func (d *downstream) counted() ReplicationStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.stats
	st.Name = d.source.name
	if d.phase != stopped {
		st.Players = 1
	}
	if d.phase == ready {
		st.Ready = 1
	}
	return st
}

// refuse counts an ack that no honest client sends.
func (d *downstream) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.InvalidAcks++
}

// counted gives what was counted for all players.
func (c *downSource) counted() ReplicationStats {
	c.mu.Lock()
	st, streams := c.past, slices.Clone(c.streams)
	c.mu.Unlock()
	st.Name = c.name
	for _, d := range streams {
		one := d.counted()
		st.add(&one)
		st.Players += one.Players
		st.Ready += one.Ready
		st.BaselineAge = max(st.BaselineAge, one.BaselineAge)
	}
	return st
}

// downstreams gives what was counted for each source, by name.
func (s *Server) downstreams() (all []ReplicationStats) {
	s.mu.Lock()
	sources := maps.Clone(s.sources)
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		all = append(all, sources[name].common().counted())
	}
	return all
}
