package client

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport"
)

// ReplicationStats counts the messages of a world that a client received. Sizes are in bytes. Its
// method Add adds the counts of others.
//
//	Name   string  // name of the world
//	Rate   float64 // measured rate of the world's ticks: 1 if they are as fast as the server says
//
//	Messages, Updates         uint64 // messages decoded, and objects updated by state packets
//	Datagrams, Bytes          uint64 // datagrams with messages, and content of complete messages
//	Fragments                 uint64 // datagrams with fragments
//	Initial, InitialBytes     uint64 // size of the initial states requested, and what was received
//	Acks, AckBytes            uint64 // acks sent, without headers
//	Partial                   uint64 // views that were shown before all of their objects had arrived
//
//	Late, BaselineMissing, Desync, Incomplete uint64 // messages dropped: late or duplicate, without the
//	                          // baseline or with another one, with fragments that did not arrive
//	Unpolled                  uint64 // updates dropped because too many waited for Poll
//	BadFragments, Truncated, BadCounts, BadIDs, BadValues, Malformed uint64 // that no server sends
type ReplicationStats = replication.Stats

// RPCStats counts the frames of one bound RPC. It contains these counts of payloads:
//
//	RPC                       string
//	Reliable                  bool   // the channel
//	Messages, Bytes           uint64 // payloads with frames, headers included
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
	// Stats counts the frames that were sent.
	rpcdelta.Stats
	// Delivery counts their delivery as reported by the server's acks; 0 for a reliable RPC.
	Delivery rpcdelta.DeliveryStats
	// Repeated counts the payloads that were sent again because their acks were overdue.
	Repeated uint64
	// Calls that were not sent: OutOfRange had a value that its field cannot hold, TooLarge did not
	// fit into a datagram, Unencodable failed for another reason, for example a frame of another
	// schema, and Reconnecting had no connection.
	OutOfRange, TooLarge, Unencodable, Reconnecting uint64
	// Redundancy is the current maximum number of redundant payloads in each payload.
	Redundancy int
	// Loss is the recent share of lost payloads according to acks, and Burst the mean length of a
	// loss burst in payloads. Both are 0 for a reliable RPC and for one that is not bound.
	Loss, Burst float64
	// Pace is the state of the server's jitter buffer.
	Pace Pace
}

// FullWireBytes returns the size that the frames would have if each were bit-packed and sent in an
// encrypted datagram of its own. Whatever the suite, a datagram has a header of 3 bytes, a tag of
// 16 bytes, and the headers of UDP and IPv4.
func (s *RPCStats) FullWireBytes() uint64 { return s.FullBits/8 + endpoint.FullOverhead*s.Frames() }

// WireRatio returns the wire ratio of an RPC on the unreliable channel, or of all RPCs together if
// rpc is "": all bits in both directions, including acks and all headers down to IP, divided by the
// bits of the same frames if each were bit-packed and sent in an encrypted datagram of its own.
// Acks that were lost count with the mean size of the others. The RPCs share the acks in proportion
// to their datagrams. It is 0 if there were no frames.
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
	acks := float64(s.Acks.WireBytes()) * sent * float64(datagrams) / float64(max(1, all))
	return (float64(up) + acks) / float64(full)
}

// Stats counts the traffic of a connection since Dial, over all reconnections.
type Stats struct {
	// RPCs is in the order of the RPCs' numbers: the order of binding, except that an RPC may reuse
	// the number of one that was refused. Refused RPCs are left out.
	RPCs []RPCStats
	// Replication has one entry for each world that was subscribed, in the order of their first
	// subscription.
	Replication []ReplicationStats
	// Acks counts received acks, and the reports on jitter buffers in the same messages: Messages
	// is the number of datagrams with nothing but acks, AEADBytes their AEAD overhead, and Bytes
	// the size of all acks without headers. Its method WireBytes returns the size with headers.
	Acks endpoint.Acks
	// Calls counts the server's calls for which a handler ran ([Handle]), CallsDropped the payloads
	// of unreliable calls that arrived too late, could not be decoded or belong to an unknown RPC.
	Calls, CallsDropped uint64
	// StreamBytesSent and StreamBytesReceived count the data of streams.
	StreamBytesSent, StreamBytesReceived uint64
	// Malformed counts received messages that no server sends.
	Malformed uint64
	// Mismatches counts the differences from the server that were reported: see [MismatchError].
	Mismatches uint64
	// Panics counts panics of the game's callbacks and of decoders of the server's data. Each ends
	// its session with transport.ErrPanic.
	Panics uint64
	// RTT is the smoothed round-trip time; 0 until it is measured.
	RTT time.Duration
	// SentBitsPerSecond and ReceivedBitsPerSecond are the bit rates of the last full second, with
	// all headers down to IP.
	SentBitsPerSecond, ReceivedBitsPerSecond float64
	// Loss is the share of the server's datagrams that never arrived, since Dial.
	Loss float64
	// Budget is the state of the bandwidth limit.
	Budget BudgetStats
	// Transport counts datagrams.
	Transport transport.Stats
}

// BudgetStats is the state of the limit Config.Bandwidth, and of the limit that follows from
// congestion.
type BudgetStats struct {
	// Limit is Config.Bandwidth in bits/s; 0 if there is none.
	Limit int
	// Path is the limit in bits/s that follows from congestion of the path; 0 if there is none.
	Path int
	// BitsPerSecond is the bit rate of the last full second with all headers down to IP, and
	// OverBits the number of bits above Limit so far. Both are 0 without a Limit.
	BitsPerSecond float64
	OverBits      uint64
	// Redundancy is the permitted number of redundant payloads, 15 if nothing
	// has to be reduced.
	Redundancy int
	// FramesPerPayload is the minimum mean number of calls per payload of an unreliable RPC with
	// the adaptive codec, 1 if nothing has to be reduced. With a longer BindConfig.Delay there are
	// more. With many urgent frames there are fewer, at least 0.85 times as many.
	FramesPerPayload float64
}

// Pace is the state of an RPC's jitter buffer on the server (ds.JitterBuffer), and the rate
// at which the game should call the RPC for it. Without a jitter buffer, all fields but Rate are 0.
type Pace struct {
	// Rate is the speed at which the game's clock should run so that calls arrive when the server
	// needs them: 1 is the nominal speed, 1.01 is 1 % faster. It differs from 1 by at most
	// jitter.MaxPace, and is 1 if the server reported nothing for two seconds.
	Rate float64
	// Slack is the mean time between the arrival of a call and its use, negative if calls arrive
	// late. Target is the slack that the buffer aims for.
	Slack, Target time.Duration
	// Missing counts the server's ticks without a call, Late the calls that arrived after their
	// tick, over all reconnections.
	Missing, Late uint64
}

// Interval returns the time from one call to the next at this pace, where d is the nominal
// interval.
func (p Pace) Interval(d time.Duration) time.Duration {
	if p.Rate <= 0 {
		return d
	}
	return time.Duration(float64(d) / p.Rate)
}

// pace contains the server's last report on the jitter buffer of an RPC.
type pace struct {
	start time.Time // start of the pacer's times
	pacer jitter.Pacer
	last  message.Buffered
}

// report handles a report, unless a newer one arrived before: the counts of a buffer never
// decrease. It updates total, except Rate.
func (p *pace) report(now time.Time, b *message.Buffered, total *Pace) {
	if int16(b.Missing-p.last.Missing) < 0 || int16(b.Late-p.last.Late) < 0 {
		return
	}
	if p.start.IsZero() {
		p.start = now
	}
	p.pacer.Report(now.Sub(p.start), b.Slack, b.Target, b.Rate)
	total.Slack, total.Target = b.Slack, b.Target
	total.Missing += uint64(b.Missing - p.last.Missing)
	total.Late += uint64(b.Late - p.last.Late)
	p.last = *b
}

// rate returns Pace.Rate at now.
func (p *pace) rate(now time.Time) float64 { return p.pacer.Rate(now.Sub(p.start)) }
