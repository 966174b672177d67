package transport

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/counts"
)

// Traffic contains what connections and listeners count alike. Byte counts are sizes of UDP
// payloads.
type Traffic struct {
	DatagramsSent, BytesSent uint64
	// DatagramsReceived and BytesReceived include dropped datagrams. A connection counts those from
	// the peer's address.
	DatagramsReceived, BytesReceived uint64
	// SendFailed counts datagrams among those sent that the packet connection rejected, for example
	// for lack of buffers (ENOBUFS), permission (EPERM) or a route (ENETUNREACH), or for their size
	// (EMSGSIZE). They are lost. The logger receives a record when a period of such failures starts
	// and when it ends.
	SendFailed uint64
	// Lost counts lost datagrams of the peers: not received before 64 newer ones.
	Lost uint64
	// PathMigrations counts changes of a peer's address.
	PathMigrations uint64
	// SmallPaths counts how often a path was found not to carry datagrams of 1,200 bytes. It is
	// more than 1 for a connection if the path changes.
	SmallPaths uint64
	// Dropped counts received datagrams that were not used.
	Dropped Drops
	// RTTs contains all measurements of round-trip times.
	RTTs RTTHistogram
}

// Stats contains the counts of a connection since it was established.
type Stats struct {
	Traffic
	// ProbesSent and ProbeBytes count path size probes among those sent.
	ProbesSent, ProbeBytes uint64
	// LossBursts counts runs of lost datagrams; the mean length of a burst is Lost/LossBursts.
	LossBursts uint64
	// MaxDatagram is the size in bytes of the largest datagram that the path is known to carry to
	// the peer. It is at least 548, which every path carries, or 0 while the size is not known.
	// Payloads and messages that need larger datagrams are sent in parts. A dialed connection
	// searches for the size when it opens and after a change of its local address, a connection of
	// a listener when large datagrams are lost.
	MaxDatagram int
	// RTT is the round-trip time, the mean of the middle third of the last 9 measurements. LastRTT
	// is the latest measurement, and MinRTT the lowest of the last 30 to 40 s. All are 0 before the
	// first measurement. There is about one a second, fewer while the connection is idle. A client
	// can delay the answers that are measured, but it can shorten a measurement by at most 20 ms,
	// and it cannot add measurements.
	RTT, LastRTT, MinRTT time.Duration
	// Rate is the rate in bits/s, with all headers down to IP, that congestion permits this end to
	// send; 0 while there is no congestion. Queue is the last measured delay in the queue of the
	// path to the peer. Both follow from the peer's reports.
	Rate  float64
	Queue time.Duration
	// StreamBytes counts the bytes of streams that were sent, with all headers down to IP.
	StreamBytes uint64
}

// ListenerStats contains the counts of a listener since it was opened, over all its connections,
// past and present.
type ListenerStats struct {
	Traffic
	Conns          int    // current connections, including those whose handshake is incomplete
	Open           int    // current connections whose handshake is complete
	MaxConns       int    // maximum number of connections, as configured
	Forwarded      uint64 // datagrams that arrived at a shard other than that of their connection
	ProtocolErrors uint64 // connections that ended with [ErrProtocol]
	Unacknowledged uint64 // connections that ended after 20 transmissions of a reliable segment
}

// Drops counts dropped datagrams by reason. Its method All iterates over the names of the reasons,
// in snake case as in metrics, and their counts, and Total returns their sum.
type Drops = counts.Drops

// RTTHistogram is a histogram of measured round-trip times. Each end measures about once a second.
// Its method Count returns the number of measurements and Buckets iterates over the upper bounds of
// the buckets, in ascending order, and the number of measurements in each; the last bound is the
// maximum duration. The field Sum is the sum of all measurements, a time.Duration.
type RTTHistogram = counts.RTTHistogram
