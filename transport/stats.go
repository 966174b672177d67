package transport

import (
	"errors"
	"iter"
	"net"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/session"
)

// Stats is what a connection has counted since it began. Bytes are those of UDP payloads.
type Stats struct {
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64 // from the peer's address, also those that were dropped
	// ProbesSent and ProbeBytes are those of them that look for the largest datagram of the path.
	ProbesSent, ProbeBytes uint64
	// SendFailed counts datagrams among those sent that the packet connection refused, for example for want of
	// buffers (ENOBUFS), permission (EPERM) or a route (ENETUNREACH), or for their size (EMSGSIZE). They are
	// lost. The configuration's logger gets a record when such a time begins, and when it ends.
	SendFailed uint64
	// Lost counts the peer's datagrams that did not come in time: before 64 newer numbers were known.
	Lost uint64
	// LossBursts is how many runs these are: where datagrams are lost, Lost/LossBursts of them are in a row.
	LossBursts uint64
	// PathMigrations counts changes of the peer's address.
	PathMigrations uint64
	// MaxDatagram is the size of the largest UDP payload that is known to reach the peer, as probes show: 0 as long as
	// none of 1,200 bytes has been answered, which are sent all the same. Only a dialed connection probes.
	MaxDatagram int
	// Dropped counts datagrams that came, but were not used.
	Dropped Drops
	// RTT is the round trip time, smoothed, and LastRTT the last measurement; 0 before the first.
	RTT, LastRTT time.Duration
	// RTTs has all measurements.
	RTTs RTTHistogram
}

// Plus returns the counts of both. RTT and LastRTT are those of o, unless it has none, and so is MaxDatagram.
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
	s.Dropped = s.Dropped.Plus(o.Dropped)
	s.RTTs = s.RTTs.Plus(o.RTTs)
	if o.RTT != 0 {
		s.RTT, s.LastRTT = o.RTT, o.LastRTT
	}
	if o.MaxDatagram != 0 {
		s.MaxDatagram = o.MaxDatagram
	}
	return s
}

// ListenerStats is what a listener has counted since it began, over all its connections, past and
// present. Bytes are those of UDP payloads.
type ListenerStats struct {
	Conns                            int // now, also those whose handshake is not over
	Open                             int // now, of which the handler knows
	MaxConns                         int // as configured
	DatagramsSent, BytesSent         uint64
	DatagramsReceived, BytesReceived uint64
	SendFailed                       uint64 // datagrams that packet connections refused, as in [Stats]
	PathMigrations                   uint64 // times that a peer's address has changed
	Forwarded                        uint64 // datagrams that came to another shard than their connection's
	ProtocolErrors                   uint64 // connections that ended with [ErrProtocol]
	Unacknowledged                   uint64 // connections that ended with an unacknowledged segment
	Dropped                          Drops
	RTTs                             RTTHistogram
}

// Drops counts dropped datagrams by reason.
type Drops struct {
	Malformed       uint64 // not a datagram of this protocol
	WrongSession    uint64 // of another session or address than it says
	Unauthenticated uint64 // forged, altered, of another session, or made for another key
	Duplicate       uint64 // came before
	Late            uint64 // payloads that came after 64 newer datagrams, anything after 1,024
	Unexpected      uint64 // of a kind that makes no sense here and now
	UnknownSession  uint64 // of no connection; as all below, listeners only
	Version         uint64 // hellos refused, since their version is another
	Cookie          uint64 // hellos whose sender has not shown to own its address, though it claims so
	RateLimited     uint64 // hellos refused, since there were too many
	Token           uint64 // hellos refused for their token
	Suite           uint64 // hellos refused for their suites
	Full            uint64 // hellos refused, since there were MaxConns connections
	Overrun         uint64 // came to another shard than their connection's, which had too many of these
}

// All iterates over the reasons, in snake case, and their counts.
func (d Drops) All() iter.Seq2[string, uint64] {
	return func(yield func(reason string, n uint64) bool) {
		for i, n := range [...]uint64{
			d.Malformed, d.WrongSession, d.Unauthenticated, d.Duplicate, d.Late, d.Unexpected, d.UnknownSession,
			d.Version, d.Cookie, d.RateLimited, d.Token, d.Suite, d.Full, d.Overrun,
		} {
			if !yield(dropReasons[i], n) {
				return
			}
		}
	}
}

// dropReasons are in the order of the fields of [Drops].
var dropReasons = [...]string{
	"malformed", "wrong_session", "unauthenticated", "duplicate", "late", "unexpected", "unknown_session",
	"version", "cookie", "rate_limited", "token", "suite", "full", "overrun",
}

// Total returns the sum of all counts.
func (d Drops) Total() uint64 {
	var sum uint64
	for _, n := range d.All() {
		sum += n
	}
	return sum
}

// Stats returns what the connection has counted.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.session.Stats()
	smoothed, last := c.session.RTT()
	return Stats{
		DatagramsSent:     s.DatagramsSent,
		BytesSent:         s.BytesSent,
		ProbesSent:        s.ProbesSent,
		ProbeBytes:        s.ProbeBytes,
		DatagramsReceived: s.DatagramsReceived,
		BytesReceived:     s.BytesReceived,
		SendFailed:        c.failed.Load(),
		Lost:              s.Lost,
		LossBursts:        s.LossBursts,
		PathMigrations:    s.PathMigrations,
		MaxDatagram:       c.session.MaxDatagram(),
		Dropped:           sessionDrops(func(v session.Verdict) uint64 { return s.Verdicts[v] }),
		RTT:               smoothed,
		LastRTT:           last,
		RTTs:              c.trips,
	}
}

func sessionDrops(count func(session.Verdict) uint64) Drops {
	return Drops{
		Malformed:       count(session.Malformed),
		WrongSession:    count(session.WrongSession),
		Unauthenticated: count(session.Unauthenticated),
		Duplicate:       count(session.Duplicate),
		Late:            count(session.Late),
		Unexpected:      count(session.Unexpected),
	}
}

// sentCounters counts what is sent, from any goroutine.
type sentCounters struct {
	datagrams, bytes, failed atomic.Uint64
	cause                    atomic.Pointer[error] // of a failure since it was last taken, or nil
}

// count takes the outcome of one WriteTo.
func (c *sentCounters) count(size int, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.datagrams.Add(1)
	c.bytes.Add(uint64(size))
}

// fail counts a datagram that was refused. That a packet connection is closed is no cause to be noted: it was
// exchanged for another one.
func (c *sentCounters) fail(err error) {
	if c.cause.Load() == nil && !errors.Is(err, net.ErrClosed) {
		first := err // escapes
		c.cause.CompareAndSwap(nil, &first)
	}
	c.failed.Add(1)
}

// add takes a batch that was sent.
func (c *sentCounters) add(batch []Datagram) {
	var size int
	for i := range batch {
		size += len(batch[i].Bytes())
	}
	c.datagrams.Add(uint64(len(batch)))
	c.bytes.Add(uint64(size))
}

// listenerCounters is a shard's.
type listenerCounters struct {
	sent                                                         sentCounters
	trips                                                        tripCounters
	moves                                                        atomic.Uint64
	received, receivedBytes                                      atomic.Uint64
	verdicts                                                     [session.Verdicts]atomic.Uint64
	unknownSession, version, cookie, limited, token, suite, full atomic.Uint64
	handedOver, overrun                                          atomic.Uint64
	protocolErrors, unacknowledged                               atomic.Uint64
}

// ended counts the end of a connection.
func (c *listenerCounters) ended(cause error) {
	switch {
	case errors.Is(cause, ErrProtocol):
		c.protocolErrors.Add(1)
	case errors.Is(cause, session.ErrUnacknowledged):
		c.unacknowledged.Add(1)
	}
}

// addTo adds what was counted to t.
func (c *listenerCounters) addTo(t *ListenerStats) {
	drops := sessionDrops(func(v session.Verdict) uint64 { return c.verdicts[v].Load() })
	drops.UnknownSession = c.unknownSession.Load()
	drops.Version = c.version.Load()
	drops.Cookie = c.cookie.Load()
	drops.RateLimited = c.limited.Load()
	drops.Token = c.token.Load()
	drops.Suite = c.suite.Load()
	drops.Full = c.full.Load()
	drops.Overrun = c.overrun.Load()
	t.DatagramsSent += c.sent.datagrams.Load()
	t.BytesSent += c.sent.bytes.Load()
	t.DatagramsReceived += c.received.Load()
	t.BytesReceived += c.receivedBytes.Load()
	t.SendFailed += c.sent.failed.Load()
	t.PathMigrations += c.moves.Load()
	t.Forwarded += c.handedOver.Load()
	t.ProtocolErrors += c.protocolErrors.Load()
	t.Unacknowledged += c.unacknowledged.Load()
	t.Dropped = t.Dropped.Plus(drops)
	t.RTTs = t.RTTs.Plus(c.trips.snapshot())
}

// Plus returns the sum of both, reason by reason.
func (d Drops) Plus(o Drops) Drops {
	d.Malformed += o.Malformed
	d.WrongSession += o.WrongSession
	d.Unauthenticated += o.Unauthenticated
	d.Duplicate += o.Duplicate
	d.Late += o.Late
	d.Unexpected += o.Unexpected
	d.UnknownSession += o.UnknownSession
	d.Version += o.Version
	d.Cookie += o.Cookie
	d.RateLimited += o.RateLimited
	d.Token += o.Token
	d.Suite += o.Suite
	d.Full += o.Full
	d.Overrun += o.Overrun
	return d
}
