// Package reliable implements a channel for ordered messages without loss over datagrams that can
// be lost. It wraps the KCP state machine of kcp-go in a small interface.
//
// KCP reads the clock of the process in addition to the times passed to this package; under
// testing/synctest both are the same. Importing kcp-go starts its scheduler (goroutines
// (*TimedSched).sched and (*TimedSched).prepend). The state machine does not use it, and leak
// checkers must ignore it.
package reliable

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"

	"github.com/uplink-rpc/uplink/transport"
)

const (
	// MaxMessage is the maximum size of a message in bytes.
	MaxMessage = 16 << 10
	// SegmentSize is the size of a segment's header in bytes.
	SegmentSize = kcp.IKCP_OVERHEAD

	window   = 64                    // maximum number of segments in flight, and of segments that the receiver stores
	interval = 10 * time.Millisecond // between two flushes; KCP's minimum
	// A segment is retransmitted after two acks of later segments. There is no congestion window:
	// messages are few, and a game cannot wait for it to grow.
	fastResend, noCongestionWindow = 2, 1
	// KCP skips a flush that is early by its own clock, even by the time that the caller waited for
	// a lock. It never skips two in succession.
	settleFlushes = 2
	// maxSample is the maximum time to an acknowledgment that is accepted as a measurement, in ms.
	// It equals KCP's maximum timeout.
	maxSample = 60_000
	// releaseAfter is the time after the last flush at which an idle state machine is released.
	releaseAfter = 2 * time.Second
)

// The errors of a Channel.
var (
	ErrEmpty     = errors.New("transport: a reliable message has at least one byte")
	ErrTooLarge  = errors.New("message too large")
	ErrBacklog   = transport.ErrBacklog
	ErrMalformed = errors.New("transport: malformed reliable segments")
)

// Config configures a channel.
type Config struct {
	// Conv is the conversation number, the same at both ends.
	Conv uint32
	// MTU is the maximum size of a body for Output, in bytes.
	MTU uint16
	// Overhead is the overhead of a datagram in bytes, including headers down to IP. It counts
	// towards the budget.
	Overhead uint16
	// Limits bounds the messages that wait to be sent or acknowledged, each with its size prefix;
	// nil means no limit.
	Limits *Limits
	// Patience is the minimum time for which retransmission continues while the peer is
	// unreachable.
	Patience time.Duration
	// Output sends segments to the peer: at most MTU bytes, valid during the call. Send, Input and
	// Advance call it.
	Output func(now time.Time, segments []byte)
	// Room returns how many bytes a paced channel may send now, how many it may have in flight, and
	// how many the path carries per second, all with headers. Nil means no limit.
	Room func(now time.Time) (room, flight, rate float64)
}

// Channel is one end of a reliable channel. While it is in use, and for 2 s after that, it has a
// state of about 21 KB. An idle channel stores only its sequence numbers. It buffers at most twice
// the window of the peer's segments, 192 KB. Whatever the peer does, it sends at most 3 bytes for
// each newly acknowledged byte and 64 KiB per second. It fails after [MaxTransmissions]
// transmissions of a segment. It is not safe for concurrent use.
type Channel struct {
	cfg Config

	kcp       *kcp.KCP // nil while the channel is idle
	allowed   int      // number of segments that KCP may have in flight now, at most window
	in        inbox
	flushAt   time.Time // next flush; zero: nothing to flush
	flushNext time.Time // KCP flushes nothing before this time
	releaseAt time.Time // time to release the state machine; zero: not before another flush
	settle    int       // number of flushes left after everything is acknowledged
	numbers   numbers
	clock     uint32 // KCP's clock at the start, in ms
	rtt       int32  // smoothed time from a transmission to its acknowledgment, in ms

	start       time.Time     // origin of now and progress
	now         time.Duration // time of the current call
	progress    time.Duration // time of the last new acknowledgment
	budget      budget
	queue       *queue       // nil while the channel is idle
	bulk        *bulk        // nil if the channel is not paced
	outstanding *outstanding // nil while the channel is idle
	exhausted   bool
}

// New returns an unused channel.
func New(cfg Config) Channel { return Channel{cfg: cfg} }

// begin creates the state machine before its first use, or again after its release.
func (c *Channel) begin(now time.Time) {
	if c.kcp != nil {
		return
	}
	if c.start.IsZero() {
		c.start, c.budget = now, budget{bytes: baseBurst, at: now}
	}
	c.outstanding, c.queue = new(outstanding), new(queue)
	c.kcp = kcp.NewKCP(c.cfg.Conv, func(buf []byte, size int) { c.emit(buf[:size]) })
	c.kcp.SetMtu(int(c.cfg.MTU))
	c.kcp.NoDelay(1, int(interval/time.Millisecond), fastResend, noCongestionWindow)
	if c.rtt > 0 {
		c.kcp.Input(c.measurement(), kcp.IKCP_PACKET_REGULAR, false)
	}
}

// measure updates the smoothed round-trip time as KCP does, from the transmission time that an
// acknowledgment echoes.
func (c *Channel) measure(now time.Time, s []byte) {
	sample := int32(uint32(now.Sub(c.start).Milliseconds()) + c.clock - timestamp(s))
	if s[offCommand] == kcp.IKCP_CMD_ACK && sample >= 0 && sample <= maxSample {
		c.rtt = cmp.Or(c.rtt, sample)
		c.rtt += (sample - c.rtt) / 8
	}
}

// measurement returns an acknowledgment of no segment. From it, a new state machine learns the
// round-trip time that the last one measured.
func (c *Channel) measurement() []byte {
	b := make([]byte, kcp.IKCP_OVERHEAD)
	binary.LittleEndian.PutUint32(b, c.cfg.Conv)
	b[offCommand] = kcp.IKCP_CMD_ACK
	binary.LittleEndian.PutUint16(b[offWindow:], window)
	binary.LittleEndian.PutUint32(b[offTime:], c.kcp.Check()-uint32(c.rtt)) // Check returns KCP's clock
	binary.LittleEndian.PutUint32(b[offNumber:], math.MaxUint32)            // number before the first segment
	return b
}

// release frees the state machine if the peer has acknowledged everything, and all received
// messages are complete and were delivered. A new state machine continues with the next sequence
// numbers.
func (c *Channel) release() {
	if c.segments() == 0 && c.kcp.PeekSize() < 0 && c.in.empty() && c.numbers.complete() {
		c.kcp, c.outstanding, c.queue, c.in = nil, nil, nil, inbox{}
		c.numbers.restart()
	}
}

// Exhausted reports whether a segment was sent [MaxTransmissions] times without being acknowledged.
// The channel has failed then and sends nothing more.
func (c *Channel) Exhausted() bool { return c.exhausted }

// Send queues a copy of the message b and sends as much as the window permits, at the next flush if
// the last one was less than 10 ms ago. Queued messages share segments. If it returns [ErrEmpty],
// [ErrTooLarge] or [ErrBacklog], nothing was queued.
func (c *Channel) Send(now time.Time, b []byte) error {
	if len(b) == 0 {
		return ErrEmpty
	}
	if len(b) > MaxMessage {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), MaxMessage)
	}
	if err := c.reserve(len(b)); err != nil {
		return err
	}
	c.begin(now)
	c.push(b)
	if !now.Before(c.flushNext) {
		c.flush(now)
	} else if c.flushAt.IsZero() || c.flushNext.Before(c.flushAt) {
		c.flushAt = c.flushNext
	}
	return nil
}

// Input handles segments of the peer. It overwrites the sequence numbers in b. If the segments are
// invalid, it returns [ErrMalformed] and changes nothing. Messages may be ready for
// [Channel.Receive] afterwards.
func (c *Channel) Input(now time.Time, b []byte) error {
	if !c.valid(b) {
		return ErrMalformed
	}
	c.begin(now)
	for s := range segmentsOf(b) {
		c.numbers.input(s)
		c.measure(now, s)
		if n, messages := c.outstanding.acknowledged(s); n > 0 {
			c.budget.credit(n)
			c.free(n)
			c.queue.messages -= messages
			c.progress = now.Sub(c.start)
		}
	}
	c.prepare(now)
	if c.kcp.Input(b, kcp.IKCP_PACKET_REGULAR, false) != 0 {
		return ErrMalformed
	}
	c.scheduleFlush(now)
	return nil
}

// Receive copies the next message to dst, grown if it has too little room, and returns it and true,
// or dst and false if no message is complete. [ErrMalformed] means that the peer's segments form no
// messages: the channel cannot continue.
func (c *Channel) Receive(now time.Time, dst []byte) ([]byte, bool, error) {
	for {
		switch m, err := c.in.next(); {
		case err != nil:
			return dst, false, err
		case m != nil:
			return append(dst[:0], m...), true, nil
		case c.kcp == nil || c.kcp.PeekSize() < 0:
			return dst, false, nil
		}
		c.kcp.Recv(c.in.extend(c.kcp.PeekSize()))
		c.scheduleFlush(now)
	}
}

// Advance flushes acknowledgments and segments that are due at now, or releases the state machine
// if that is due.
func (c *Channel) Advance(now time.Time) {
	switch next, ok := c.Next(); {
	case !ok || now.Before(next):
	case !c.flushAt.IsZero():
		c.flush(now)
	default:
		c.releaseAt = time.Time{}
		c.release()
	}
}

// Next returns when to call [Channel.Advance], or false if there is nothing to do.
func (c *Channel) Next() (time.Time, bool) {
	if !c.flushAt.IsZero() {
		return c.flushAt, true
	}
	return c.releaseAt, !c.releaseAt.IsZero()
}

// flush makes KCP send everything that is due, and schedules the next flush if something is unsent
// or unacknowledged.
func (c *Channel) flush(now time.Time) {
	c.prepare(now)
	more := c.pull()
	c.feed()
	c.kcp.Update()
	c.settle = max(c.settle-1, 0)
	c.flushAt, c.flushNext, c.releaseAt = time.Time{}, now.Add(interval), now.Add(releaseAfter)
	if c.segments() > 0 || c.settle > 0 || more {
		c.flushAt = now.Add(interval)
	}
}

// scheduleFlush schedules a flush for acknowledgments and window updates, so that several datagrams
// are answered by one flush.
func (c *Channel) scheduleFlush(now time.Time) {
	c.settle = settleFlushes
	if c.flushAt.IsZero() {
		c.flushAt = now.Add(interval)
	}
}

// prepare limits KCP's window to the number of new segments that the budget permits. Other segments
// wait in KCP's queue.
func (c *Channel) prepare(now time.Time) {
	c.now = now.Sub(c.start)
	c.budget.refill(now)
	room := int(c.budget.bytes) / int(c.cfg.MTU+c.cfg.Overhead)
	c.allowed = min(max(c.outstanding.held()+room, 1), window)
	c.kcp.WndSize(c.allowed, window)
}

// emit sends the segments of a datagram of KCP, except early retransmissions. It sends nothing if
// they exceed the budget. KCP treats this as packet loss and tries again later.
func (c *Channel) emit(b []byte) {
	due := b[:0]
	for s := range segmentsOf(b) {
		c.numbers.emitted(s)
		if s[offCommand] == kcp.IKCP_CMD_PUSH { // other commands contain the peer's clock
			c.clock = timestamp(s) - uint32(c.now.Milliseconds())
		}
		if s[offCommand] != kcp.IKCP_CMD_PUSH || c.outstanding.due(c.now, c.progress, c.cfg.Patience, s) {
			due = append(due, s...)
		}
	}
	if c.exhausted || len(due) == 0 || !c.budget.take(len(due)+int(c.cfg.Overhead)) {
		return
	}
	for s := range segmentsOf(due) {
		if s[offCommand] == kcp.IKCP_CMD_PUSH {
			n := c.outstanding.sent(c.now, s, c.queue.ends[number(s)%window])
			c.exhausted = c.exhausted || n == MaxTransmissions
			if n > 1 {
				c.bulk.charge(len(s) + int(c.cfg.Overhead))
			}
		}
		c.numbers.output(s)
	}
	c.cfg.Output(c.start.Add(c.now), due)
}

// Unacked returns the number of messages that wait to be sent or acknowledged.
func (c *Channel) Unacked() int {
	if c.queue == nil {
		return 0
	}
	return c.queue.messages
}

// segments returns the number of segments that wait to be sent or acknowledged.
func (c *Channel) segments() int {
	return c.kcp.WaitSnd() + (c.queue.len()+c.maxData()-1)/c.maxData()
}

// reserve reserves room for a message of n bytes. It returns an error that wraps ErrBacklog if
// there is none.
func (c *Channel) reserve(n int) error {
	l, size, waiting := c.cfg.Limits, n+sizeOf(n), c.waiting()
	switch {
	case l == nil:
		return nil
	case waiting+size > l.each:
		return fmt.Errorf("%w: %d bytes do not fit beside %d of reliable data; the limit of a connection is %d", ErrBacklog, n, waiting, l.each)
	case !l.take(size):
		return fmt.Errorf("%w: %d bytes do not fit beside the reliable data of all connections; their limit is %d", ErrBacklog, n, l.all)
	}
	return nil
}

// waiting returns the number of unacknowledged bytes.
func (c *Channel) waiting() int {
	if c.queue == nil {
		return 0
	}
	return c.queue.bytes
}

// free releases room for n bytes.
func (c *Channel) free(n int) {
	if l := c.cfg.Limits; l != nil && c.queue != nil {
		c.queue.bytes -= n
		l.used.Add(int64(-n))
	}
}

// Room returns the size in bytes of the largest message for which there is room now, or 0.
func (c *Channel) Room() int {
	room := MaxMessage
	if l := c.cfg.Limits; l != nil {
		free := min(l.each-c.waiting(), l.all-int(l.used.Load()))
		room = min(room, free-sizeOf(free-1))
	}
	return max(room, 0)
}

// push appends a message to the stream. The caller has reserved room for it.
func (c *Channel) push(b []byte) {
	q := c.queue
	q.messages++
	if c.cfg.Limits != nil {
		q.bytes += len(b) + sizeOf(len(b))
	}
	q.b = AppendMessage(q.b, b)
}

// feed moves the bytes that may be sent now to the state machine, in as few segments as possible.
// Messages of a paced channel do not share segments: they are as large as its path permits.
func (c *Channel) feed() {
	q := c.queue
	for q.len() > 0 && c.kcp.WaitSnd() < c.allowed {
		n := min(q.len(), c.maxData())
		if c.bulk != nil {
			data, size, _ := parseSize(q.b[q.head:])
			n = size + data
		}
		c.kcp.Send(q.b[q.head : q.head+n])
		q.cut(n)
	}
	switch {
	case q.len() == 0:
		q.b, q.head, q.end = nil, 0, 0
	case q.head > len(q.b)/2:
		q.b, q.head, q.end = slices.Delete(q.b, 0, q.head), 0, q.end-q.head
	}
}

// Drop releases the room of all unacknowledged messages. The channel must not be used afterwards.
func (c *Channel) Drop() {
	c.free(c.waiting())
	c.cfg.Limits = nil
}
