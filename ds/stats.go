package ds

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/fleet"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport"
)

// Drop is the reason why a received message, payload or frame was not delivered.
type Drop uint8

// The reasons. Each is a value of the label "reason" in metrics.
const (
	BaselineMissing Drop = iota // the frame's baseline is not in the ring
	Desync                      // the baseline is another frame on the client
	Late                        // a newer frame was received before
	Duplicate                   // the frame was received before
	Malformed                   // no correct client sends it
	UnknownRPC                  // the RPC is not bound, or there is no Config.OnMessage
	QueueFull                   // the queue for Poll is full, see Config.Limits.QueueBytes
	RateLimited                 // above the player's rate limit, see Config.Limits.RateSlack
	Rejected                    // the game's validator rejected the frame, see [Validate]
	LateForTick                 // the frame's tick is over, see [JitterBuffer]
	Discarded                   // the jitter buffer is full, or was resynced
	Kicked                      // the session was ended by Kick or by a panic of a handler
	InvalidAck                  // an ack of a message that was never sent
	AheadOfTime                 // the player's calls are ahead of time, see [TimeCheck]
	drops
)

// String returns the reason's name in metrics.
func (d Drop) String() string {
	if d >= drops {
		return fmt.Sprintf("Drop(%d)", uint8(d))
	}
	return [...]string{
		"baseline_missing", "desync", "late", "duplicate", "malformed", "unknown_rpc", "queue_full", "rate_limited", "rejected",
		"late_for_tick", "discarded", "kicked", "invalid_ack", "ahead_of_time",
	}[d]
}

// errDrop is the error of a [sink] that drops a frame.
type errDrop Drop

func (e errDrop) Error() string { return "ds: frame dropped: " + Drop(e).String() }

// reason returns the Drop for an error of a decoder or a sink. The first values of Drop correspond
// to the decoder's errors, in this order.
func reason(err error) Drop {
	if d, ok := errors.AsType[errDrop](err); ok {
		return Drop(d)
	}
	for d, target := range []error{rpcdelta.ErrBaselineMissing, rpcdelta.ErrDesync, rpcdelta.ErrLate, rpcdelta.ErrDuplicate} {
		if errors.Is(err, target) {
			return Drop(d)
		}
	}
	return Malformed
}

// Stats contains the counts of a server since Listen. The counts of a batch of datagrams are added
// when all of them have been handled.
type Stats struct {
	// RPCs is sorted by name, the unreliable channel first. A reliable channel without traffic is
	// left out.
	RPCs []RPCStats
	// Acks counts acks, and the reports on jitter buffers that are sent with them: Messages is the
	// number of datagrams with nothing but acks, AEADBytes their AEAD overhead, Piggybacked the
	// number of datagrams with acks and a message of a world, and Bytes the size of all acks
	// without headers. Its method WireBytes returns the size with headers.
	Acks endpoint.Acks
	// Replication is sorted by name.
	Replication []ReplicationStats
	// Drops counts messages that belong to no RPC, by reason.
	Drops [drops]uint64
	// Panics counts recovered panics of callbacks; see Config.Hooks.PanicHandler.
	Panics uint64
	// Requests counts the received requests of client.Conn.Request.
	Requests uint64
	// Calls counts the calls of clients' RPCs ([Bind]), CallBytes their payloads with headers.
	Calls, CallBytes uint64
	// StreamBytesSent and StreamBytesReceived count the data of streams.
	StreamBytesSent, StreamBytesReceived uint64
	// Events counts the events by Kind and Cause, the only other fields that are set.
	Events []Event
	// Fleet counts the server's operations as part of a fleet; nil without Config.Fleet.
	Fleet *fleet.Stats
	// Transport counts datagrams and connections.
	Transport transport.ListenerStats
}

// WireRatio returns the wire ratio of an RPC on the unreliable channel, or of all RPCs together if
// rpc is "": all bits in both directions, including acks and all headers down to IP, divided by the
// bits of the same frames if each were bit-packed and sent in an encrypted datagram of its own.
// Datagrams to the server that were lost count with the mean size of the others. The RPCs share the
// acks in proportion to their datagrams. It is 0 if there were no frames.
func (s *Stats) WireRatio(rpc string) float64 {
	var up, datagrams, all, full uint64
	for i := range s.RPCs {
		r := &s.RPCs[i]
		if r.Reliable {
			continue
		}
		all += r.Datagrams()
		if rpc == "" || rpc == r.RPC {
			up += r.WireBytes()
			datagrams += r.Datagrams()
			full += r.FullWireBytes()
		}
	}
	if full == 0 {
		return 0
	}
	sent := 1 + float64(s.Transport.Lost)/float64(max(1, s.Transport.DatagramsReceived))
	acks := float64(s.Acks.WireBytes()) * float64(datagrams) / float64(max(1, all))
	return (float64(up)*sent + acks) / float64(full)
}

// ReplicationStats counts the messages of a world to one player or to all players. Sizes are in
// bytes. Its method Add adds the counts of others, and WireBytes returns the size of the datagrams
// with all headers down to IP.
//
//	Name   string  // name of the world
//	TickHz float64 // ticks per second
//	Rate   float64 // measured rate of the ticks: 1 if they are as fast as TickHz says
//
//	Players, Ready int // players to whom the world is offered, and to whom it is sent
//	Objects        int // objects that the player has according to the last message, summed
//	Waiting        int // objects that wait for bandwidth: those that enter a view, or with state those
//	                   // with a priority that were in none of the last 32 messages
//
//	Ticks, Messages, Updates      uint64 // ticks, messages, and objects updated by state packets
//	Datagrams, Bytes, AEADBytes   uint64 // datagrams with messages, their content and AEAD overhead
//	InitialBytes, AckBytes        uint64 // of initial states, and of acks without headers
//	Encodings, Sharing            uint64 // Sharing/Messages players share an encoding on average
//	Acked, InvalidAcks            uint64 // messages acked, and acks that no client sends
//	Unsent, Keyframes, Fragmented uint64 // messages that were too large, without baseline, in fragments
//	Resets                        uint64 // of state synchronization, after nothing was acked for too long
//	BaselineAge, AckAge           uint64 // in ticks, of the last message and ack: maximum over all players
type ReplicationStats = replication.Stats

// RPCStats counts the frames of one RPC on one channel, over all players, past ones included. It
// contains these counts of payloads:
//
//	RPC                       string
//	Reliable                  bool   // the channel
//	Messages, Bytes           uint64 // payloads with new frames, headers included
//	Coalesced, CoalescedBytes uint64 // payloads that were not the first in their datagram, and the
//	                                 // bytes that coalescing them added
//	AEADBytes                 uint64 // AEAD overhead of the datagrams
//	PriorFallbacks            uint64 // bindings whose prior the server did not have
//	Datagrams()               uint64 // datagrams with payloads of the RPC; one with payloads of several
//	                                 // RPCs belongs to the first
//	WireBytes()               uint64 // bytes of these datagrams, with all headers down to IP; an estimate
//	                                 // without retransmissions for the reliable channel
type RPCStats struct {
	endpoint.Payloads
	// Stats counts the delivered frames, including those that [Validate] rejected, that a jitter
	// buffer discarded, or whose player was kicked while they waited.
	rpcdelta.Stats
	// Missed counts frames that were lost or dropped. A frame is counted when a later one is
	// delivered, and no longer once it arrives late.
	Missed uint64
	// LateFrames counts the delivered frames that arrived after newer ones. It includes frames that
	// were delivered in sequence because the newer ones waited for them; see client.DelayPolicy.
	LateFrames uint64
	// Recovered counts the delivered frames with [Frame.Redundant].
	Recovered uint64
	// TimeDetections counts how often a player's calls were ahead of time; see [TimeCheck].
	TimeDetections uint64
	// Drops counts dropped payloads by reason. For rate_limited, rejected, queue_full,
	// late_for_tick, discarded, kicked and ahead_of_time it counts frames.
	Drops [drops]uint64
	// Buffer describes the jitter buffers, if there are any; see [JitterBuffer].
	Buffer BufferStats
}

// FullWireBytes returns the size that all sent frames would have if each were bit-packed and sent
// in an encrypted datagram of its own. Whatever the suite, a datagram has a header of 3 bytes, a
// tag of 16 bytes, and the headers of UDP and IPv4. Missed frames count with the mean size of the
// delivered ones.
func (st *RPCStats) FullWireBytes() uint64 {
	n := st.Frames()
	if n == 0 {
		return 0
	}
	full := float64(st.FullBits)/8 + float64(endpoint.FullOverhead*n)
	return uint64(full * (1 + float64(st.Missed)/float64(n)))
}

// count counts a delivered frame.
func (st *RPCStats) count(d *rpcdelta.Delivery) {
	st.Count(&d.Info)
	if d.Recovered {
		st.Recovered++
	}
	if d.Late {
		st.LateFrames++
		st.Missed--
		return
	}
	st.Missed += d.Missed
}

// add adds the counts of o, except Buffer.
func (st *RPCStats) add(o *RPCStats) {
	st.Add(&o.Stats)
	st.AddPayloads(&o.Payloads)
	st.Missed += o.Missed
	st.LateFrames += o.LateFrames
	st.Recovered += o.Recovered
	st.TimeDetections += o.TimeDetections
	addDrops(&st.Drops, &o.Drops)
}

func addDrops(sum, more *[drops]uint64) {
	for d, n := range more {
		sum[d] += n
	}
}

// BufferStats describes the jitter buffers of one RPC, of one player or of all.
type BufferStats struct {
	// Buffers is the number of buffers now.
	Buffers int
	// Stats counts frames and ticks, and describes the frames that wait now. Slack, Target and Rate
	// are means if there are several buffers. Rate is the rate of the calls of Poll, relative to
	// Config.TickHz.
	jitter.Stats
	// Repeated counts the missing ticks for which the last frame was repeated.
	Repeated uint64
}

// add adds the counts of o and, if o is a buffer, includes its current state in the means.
func (s *BufferStats) add(o *BufferStats) {
	s.Released += o.Released
	s.Missing += o.Missing
	s.Dry += o.Dry
	s.Repeated += o.Repeated
	s.Late += o.Late
	s.Duplicate += o.Duplicate
	s.Early += o.Early
	s.Skipped += o.Skipped
	s.Resyncs += o.Resyncs
	if o.Buffers == 0 {
		return
	}
	s.Buffers++
	s.Held += o.Held
	n := time.Duration(s.Buffers)
	s.Slack += (o.Slack - s.Slack) / n
	s.Target += (o.Target - s.Target) / n
	s.Rate += (o.Rate - s.Rate) / float64(n)
}

// counts are the counters of a shard for one RPC on one channel. The shard's goroutine counts the
// frames of a batch of datagrams without a lock, and publishes them at the end of the batch.
type counts struct {
	fresh  RPCStats // not published yet; owned by the shard's goroutine
	listed bool     // the counts are in shard.unpublished

	mu    sync.Mutex
	total RPCStats
}

// update changes the total. It may be called from any goroutine.
func (c *counts) update(f func(total *RPCStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.total)
}

func (c *counts) publish() {
	c.update(func(total *RPCStats) { total.add(&c.fresh) })
	c.fresh, c.listed = RPCStats{}, false
}
