package ds

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// Drop is a reason for which something that arrived was not delivered.
type Drop uint8

// The reasons. Each is a value of the label "reason" in metrics.
const (
	BaselineMissing Drop = iota // the frame's baseline is not in the ring
	Desync                      // the baseline is another frame on the client
	Late                        // a newer frame came first
	Duplicate                   // the frame came before
	Malformed                   // not what a client of this schema sends
	UnknownRPC                  // the RPC is not bound, or there is no Config.OnMessage
	QueueFull                   // too much waits for Poll
	RateLimited                 // more than the player may send, see Config.RateSlack
	Rejected                    // the game refused the frame, see [Validate]
	LateForTick                 // its tick is over, see [JitterBuffer]
	Discarded                   // its jitter buffer is full, or went on without it
	Kicked                      // the player's session was ended by Kick or by a panic of a handler
	InvalidAck                  // an ack of what was never sent
	drops
)

// String is the reason's name in metrics.
func (d Drop) String() string {
	if d >= drops {
		return fmt.Sprintf("Drop(%d)", uint8(d))
	}
	return [...]string{"baseline_missing", "desync", "late", "duplicate", "malformed", "unknown_rpc", "queue_full", "rate_limited", "rejected", "late_for_tick", "discarded", "kicked", "invalid_ack"}[d]
}

// reason gives the reason for an error of a decoder or a sink.
func reason(err error) Drop {
	switch {
	case errors.Is(err, rpcdelta.ErrBaselineMissing):
		return BaselineMissing
	case errors.Is(err, rpcdelta.ErrDesync):
		return Desync
	case errors.Is(err, rpcdelta.ErrLate):
		return Late
	case errors.Is(err, rpcdelta.ErrDuplicate):
		return Duplicate
	case errors.Is(err, errQueueFull):
		return QueueFull
	case errors.Is(err, errLimited):
		return RateLimited
	case errors.Is(err, errOverdue):
		return LateForTick
	case errors.Is(err, errSkipped):
		return Discarded
	}
	return Malformed
}

// RPCStats counts the frames of one RPC on one channel, over all players that
// there were.
type RPCStats struct {
	RPC      string
	Reliable bool
	// Stats counts the frames that were delivered, those among them too that [Validate]
	// refused, that a jitter buffer skipped, or whose player was kicked while they waited.
	rpcdelta.Stats
	// Messages and Bytes count the payloads that held new frames, with their
	// headers.
	Messages, Bytes uint64
	// Coalesced counts those of the payloads that came in a datagram after another one,
	// CoalescedBytes what that took beside their own bytes.
	Coalesced, CoalescedBytes uint64
	// AEADBytes counts what the seals of the datagrams took that brought them; those of
	// Coalesced have none of their own. Over the reliable channel it is an estimate: one for
	// each payload.
	AEADBytes uint64
	// Missed counts frames that were never delivered, as far as later ones show,
	// whether lost or dropped.
	Missed uint64
	// PriorFallbacks counts bindings for which the server did not have the client's
	// prior.
	PriorFallbacks uint64
	// LateFrames counts those among the delivered that came late.
	LateFrames uint64
	// Drops counts payloads by reason; for limited, refused, queue_full, overdue,
	// skipped and kicked frames.
	Drops [drops]uint64
	// Buffer is how its jitter buffers stand, if there are any: see [JitterBuffer].
	Buffer BufferStats
}

// AckStats counts the acks that were sent, with what some of their messages say of jitter
// buffers.
type AckStats struct {
	// Messages is the number of datagrams, Bytes their contents without headers,
	// AEADBytes what their seals took.
	Messages, Bytes, AEADBytes uint64
}

// Stats is what a server counted since it began. What a batch of datagrams brings is in it
// when all of them have been handled.
type Stats struct {
	// RPCs is sorted by name, with the unreliable channel first; a reliable one
	// without traffic is left out.
	RPCs []RPCStats
	Acks AckStats
	// Downstreams is sorted by name.
	Replication []ReplicationStats
	// Drops counts what belongs to no RPC, by reason.
	Drops [drops]uint64
	// Panics counts the panics of callbacks that were recovered; see Config.PanicHandler.
	Panics uint64
	// Transport counts datagrams and connections.
	Transport transport.ListenerStats
}

// Stats gives what the server counted so far.
func (s *Server) Stats() Stats {
	out := Stats{Panics: s.panics.Load(), Transport: s.ln.Stats(), Replication: s.downstreams()}
	for _, h := range s.shards {
		h.addTo(&out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.rpcs)) {
		out.RPCs = s.rpcs[name].appendStats(out.RPCs)
	}
	s.buffers.addTo(out.RPCs, s.rpcs)
	return out
}

func (h *shard) addTo(out *Stats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Acks.Messages += h.acks.Messages
	out.Acks.Bytes += h.acks.Bytes
	out.Acks.AEADBytes += h.acks.AEADBytes
	addDrops(&out.Drops, &h.drops)
}

func (r *rpc) appendStats(dst []RPCStats) []RPCStats {
	for i := range 2 {
		st := RPCStats{RPC: r.schema.RPC(), Reliable: i == 1}
		for _, h := range r.shards {
			h.counts(st.Reliable).addTo(&st)
		}
		if st.Messages != 0 || st.PriorFallbacks != 0 || st.Drops != [drops]uint64{} || i == 0 {
			dst = append(dst, st)
		}
	}
	return dst
}

func addDrops(sum, more *[drops]uint64) {
	for d, n := range more {
		sum[d] += n
	}
}
