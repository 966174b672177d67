package client

import (
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// RPCStats counts the frames of one bound RPC.
type RPCStats struct {
	RPC      string
	Reliable bool
	// Stats counts the frames that were sent.
	rpcdelta.Stats
	// Delivery counts what became of them as the server's acks tell; of a reliable RPC
	// there are none.
	Delivery rpcdelta.DeliveryStats
	// Messages and Bytes count the payloads, with their headers.
	Messages, Bytes uint64
	// Coalesced counts those of the payloads that left in a datagram after another one
	// (Config.Tick), CoalescedBytes what that took beside their own bytes.
	Coalesced, CoalescedBytes uint64
	// AEADBytes counts what the seals of the payloads' datagrams took; those of Coalesced
	// have none of their own. Over the reliable channel it is an estimate: one for each
	// payload.
	AEADBytes uint64
	// OutOfRange counts calls with a value that a field cannot hold, TooLarge
	// those that did not fit a datagram, Unencodable those that could not be encoded
	// for another reason, as a frame of another schema, Reconnecting those while
	// there was no connection. None of them was sent.
	OutOfRange, TooLarge, Unencodable, Reconnecting uint64
	// Redundancy is how many older payloads ride along in each one now, at most.
	Redundancy int
	// Loss is the share of payloads that are lost lately, as acks show, and Burst how
	// many are lost in a row on average where one is. Of an RPC that is not bound now,
	// and of a reliable one, they are 0.
	Loss, Burst float64
	// PriorFallbacks counts bindings whose server did not have Config.Prior.
	PriorFallbacks uint64
	// Pace is how the server's jitter buffer stands, if it has one.
	Pace Pace
}

// Stats is what a connection counted since Dial, over all reconnections.
type Stats struct {
	// RPCs is in the order of the RPCs' numbers, which is that in which they were
	// bound unless one took the number of another that was refused; those that were
	// refused are left out.
	RPCs []RPCStats
	// Replication has one entry for each world that was subscribed, in the order of their first
	// subscription.
	Replication []ReplicationStats
	// AckBytes counts the acks that came, with their message types and what some of these
	// messages say of jitter buffers.
	AckBytes uint64
	// Malformed counts messages that no server sends.
	Malformed uint64
	// RTT is the smoothed round trip time, 0 until it was measured.
	RTT time.Duration
	// SentBitsPerSecond and ReceivedBitsPerSecond are what went each way in the last
	// whole second, headers down to IP included.
	SentBitsPerSecond, ReceivedBitsPerSecond float64
	// Loss is the share of the server's datagrams that never came, since Dial.
	Loss float64
	// Budget is what Config.Bandwidth led to.
	Budget BudgetStats
	// Transport counts datagrams.
	Transport transport.Stats
}

// BudgetStats is how a connection keeps to Config.Bandwidth.
type BudgetStats struct {
	// Limit is Config.Bandwidth in bits a second, 0 if there is none.
	Limit int
	// BitsPerSecond is what was sent in the last whole second, headers down to IP
	// included, and OverBits all that was above the limit so far. Both are 0 without
	// a limit.
	BitsPerSecond float64
	OverBits      uint64
	// Redundancy is how many older payloads may ride along now: without need
	// rpcdelta.MaxRedundancy.
	Redundancy int
	// SendEvery is how many calls of an adaptive RPC leave in one payload now, if
	// its own BindConfig.SendEvery is not greater: without need 1.
	SendEvery int
}

func (b *budget) stats() BudgetStats {
	l := b.limits()
	return BudgetStats{Limit: int(b.limit), BitsPerSecond: b.rate, OverBits: b.over, Redundancy: l.redundancy, SendEvery: l.every}
}

// Stats gives what the connection counted so far.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	out := c.stats
	if c.link != nil {
		out.Transport = out.Transport.Plus(c.link.Stats())
	}
	out.Budget = c.budget.stats()
	out.RTT = out.Transport.RTT
	out.SentBitsPerSecond, out.ReceivedBitsPerSecond = c.meter.sent, c.meter.received
	if t := &out.Transport; t.Lost > 0 {
		out.Loss = float64(t.Lost) / float64(t.Lost+t.DatagramsReceived-t.Dropped.Total())
	}
	streams := c.streams
	c.mu.Unlock()
	out.Replication = c.worlds.Stats()
	for _, s := range streams {
		if st, failed := s.snapshot(); !failed {
			out.RPCs = append(out.RPCs, st)
		}
	}
	return out
}

func (s *stream) snapshot() (st RPCStats, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.stats
	st.Pace = s.pace.at(time.Now())
	if s.enc != nil {
		fates := s.enc.DeliveryStats()
		st.Delivery.Add(&fates)
	}
	if s.enc != nil && !s.reliable {
		st.Redundancy = s.enc.Redundancy()
		st.Loss, st.Burst = s.enc.Loss()
	}
	return st, s.failed
}

func (s *stream) counted() RPCStats {
	st, _ := s.snapshot()
	return st
}

// Stats gives what was counted for this RPC.
func (s *Stream[T]) Stats() RPCStats { return s.stream.counted() }

// Stats gives what was counted for this RPC.
func (s *FrameStream) Stats() RPCStats { return s.stream.counted() }
