package transport

import (
	"iter"
	"math"
	"time"
)

// Stats contains the counts of a connection since it was established. Byte counts are sizes of UDP
// payloads.
type Stats struct {
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64 // from the peer's address, including dropped ones
	// ProbesSent and ProbeBytes count path size probes among those sent.
	ProbesSent, ProbeBytes uint64
	// SendFailed counts datagrams among those sent that the packet connection rejected, for example
	// for lack of buffers (ENOBUFS), permission (EPERM) or a route (ENETUNREACH), or for their size
	// (EMSGSIZE). They are lost. The logger receives a record when a period of such failures starts
	// and when it ends.
	SendFailed uint64
	// Lost counts lost datagrams of the peer: not received before 64 newer ones.
	Lost uint64
	// LossBursts counts runs of lost datagrams; the mean length of a burst is Lost/LossBursts.
	LossBursts uint64
	// PathMigrations counts changes of the peer's address.
	PathMigrations uint64
	// SmallPaths counts how often the path was found not to carry datagrams of 1,200 bytes. It is
	// more than 1 if the path changes.
	SmallPaths uint64
	// MaxDatagram is the size in bytes of the largest datagram that the path is known to carry to
	// the peer. It is at least 548, which every path carries, or 0 while the size is not known.
	// Payloads and messages that need larger datagrams are sent in parts. A dialed connection
	// searches for the size when it opens and after a change of its local address, a connection of
	// a listener when large datagrams are lost.
	MaxDatagram int
	// Dropped counts received datagrams that were not used.
	Dropped Drops
	// RTT is the round-trip time, the mean of the middle third of the last 9 measurements. LastRTT
	// is the latest measurement, and MinRTT the lowest of the last 30 to 40 s. All are 0 before the
	// first measurement. There is about one a second, fewer while the connection is idle. A client
	// can delay the answers that are measured, but it can shorten a measurement by at most 20 ms,
	// and it cannot add measurements.
	RTT, LastRTT, MinRTT time.Duration
	// RTTs contains all measurements.
	RTTs RTTHistogram
}

// Plus returns the sums of the counts. The round-trip times and MaxDatagram are those of o, or of s
// where o has none.
func (s Stats) Plus(o Stats) Stats {
	s.DatagramsSent += o.DatagramsSent
	s.BytesSent += o.BytesSent
	s.DatagramsReceived += o.DatagramsReceived
	s.BytesReceived += o.BytesReceived
	s.ProbesSent += o.ProbesSent
	s.ProbeBytes += o.ProbeBytes
	s.SendFailed += o.SendFailed
	s.Lost += o.Lost
	s.LossBursts += o.LossBursts
	s.PathMigrations += o.PathMigrations
	s.SmallPaths += o.SmallPaths
	s.Dropped = s.Dropped.Plus(o.Dropped)
	s.RTTs = s.RTTs.Plus(o.RTTs)
	if o.RTT != 0 {
		s.RTT, s.LastRTT, s.MinRTT = o.RTT, o.LastRTT, o.MinRTT
	}
	if o.MaxDatagram != 0 {
		s.MaxDatagram = o.MaxDatagram
	}
	return s
}

// ListenerStats contains the counts of a listener since it was opened, over all its connections,
// past and present. Byte counts are sizes of UDP payloads.
type ListenerStats struct {
	Conns                            int // current connections, including those whose handshake is incomplete
	Open                             int // current connections whose handshake is complete
	MaxConns                         int // maximum number of connections, as configured
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64
	Lost                             uint64 // datagrams of clients: not received before 64 newer ones
	SendFailed                       uint64 // datagrams that packet connections rejected, as in [Stats]
	PathMigrations                   uint64 // changes of a peer's address
	SmallPaths                       uint64 // as in [Stats]
	Forwarded                        uint64 // datagrams that arrived at a shard other than that of their connection
	ProtocolErrors                   uint64 // connections that ended with transport.ErrProtocol
	Unacknowledged                   uint64 // connections that ended after 20 transmissions of a reliable segment
	Dropped                          Drops
	RTTs                             RTTHistogram
}

// Drops counts dropped datagrams by reason. The reasons from UnknownSession on apply to listeners
// only.
type Drops struct {
	Malformed       uint64 // not a datagram of this protocol
	WrongSession    uint64 // session or source address differs from that of the connection in the header
	Unauthenticated uint64 // forged, altered, of another session, or encrypted for another key
	Duplicate       uint64 // received before
	Late            uint64 // payloads after 64 newer datagrams, others after 1,024
	Unexpected      uint64 // kind is invalid in the current state
	UnknownSession  uint64 // belongs to no connection
	Version         uint64 // hellos of another protocol version
	Cookie          uint64 // hellos with an invalid cookie
	RateLimited     uint64 // hellos above the limits
	Token           uint64 // hellos with a refused token
	Suite           uint64 // hellos without a common suite
	Full            uint64 // hellos while there were MaxConns connections
	Overrun         uint64 // forwarded datagrams beyond the capacity of a shard's mailbox
}

// dropReasons contains the names of the fields of [Drops] in their order.
var dropReasons = [...]string{
	"malformed", "wrong_session", "unauthenticated", "duplicate", "late", "unexpected", "unknown_session",
	"version", "cookie", "rate_limited", "token", "suite", "full", "overrun",
}

func (d *Drops) counts() [len(dropReasons)]*uint64 {
	return [...]*uint64{
		&d.Malformed, &d.WrongSession, &d.Unauthenticated, &d.Duplicate, &d.Late, &d.Unexpected, &d.UnknownSession,
		&d.Version, &d.Cookie, &d.RateLimited, &d.Token, &d.Suite, &d.Full, &d.Overrun,
	}
}

// All iterates over the reasons, in snake case, and their counts.
func (d Drops) All() iter.Seq2[string, uint64] {
	return func(yield func(reason string, n uint64) bool) {
		for i, n := range d.counts() {
			if !yield(dropReasons[i], *n) {
				return
			}
		}
	}
}

// Total returns the sum of all counts.
func (d Drops) Total() (sum uint64) {
	for _, n := range d.counts() {
		sum += *n
	}
	return sum
}

// Plus returns the sums by reason.
func (d Drops) Plus(o Drops) Drops {
	add := o.counts()
	for i, n := range d.counts() {
		*n += *add[i]
	}
	return d
}

// rttBounds are the upper bounds of the buckets of an [RTTHistogram] but the last.
var rttBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	35 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// RTTHistogram is a histogram of measured round-trip times. Each end measures about once a second.
type RTTHistogram struct {
	Counts [len(rttBounds) + 1]uint64
	Sum    time.Duration
}

// Count returns the number of measurements.
func (h RTTHistogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Buckets iterates over the upper bounds of the buckets, in ascending order, and the number of
// measurements in each. The last bound is the maximum duration.
func (h RTTHistogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(bound time.Duration, n uint64) bool) {
		for i, n := range h.Counts {
			bound := time.Duration(math.MaxInt64)
			if i < len(rttBounds) {
				bound = rttBounds[i]
			}
			if !yield(bound, n) {
				return
			}
		}
	}
}

// Plus returns the sum of both histograms.
func (h RTTHistogram) Plus(o RTTHistogram) RTTHistogram {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
	return h
}
