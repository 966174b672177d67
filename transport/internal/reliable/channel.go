// Package reliable carries messages in order and without loss over datagrams that can be lost. It
// puts the bare KCP state machine behind a small interface and is the only importer of kcp-go.
//
// KCP reads the clock of the process, beside the times that are passed in here; under testing/synctest
// both are the same. Importing kcp-go starts its scheduler (goroutines (*TimedSched).sched and
// (*TimedSched).prepend), which does nothing for a bare state machine; leak checkers must ignore it.
package reliable

import (
	"errors"
	"fmt"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
)

const (
	// MaxMessage is the size of the longest message in bytes.
	MaxMessage = 16 << 10
	// SegmentSize is the size of a segment's header in bytes.
	SegmentSize = kcp.IKCP_OVERHEAD
	// MaxBacklog is how many segments can wait to be sent or acknowledged.
	MaxBacklog = 256

	window   = 64                    // segments in flight, and segments held by the receiver
	interval = 10 * time.Millisecond // between two flushes; the least that KCP takes
	// Two acknowledgments that skip a segment make it sent again; no congestion window: messages
	// are few, and a game cannot wait for it to open.
	fastResend, noCongestionWindow = 2, 1
	// KCP skips a flush that its own clock finds early, if only by the time that the caller waited
	// for a lock. The one after it is not early.
	settleFlushes = 2
)

// The errors of a Channel.
var (
	ErrEmpty     = errors.New("transport: a reliable message has at least one byte")
	ErrTooLarge  = errors.New("transport: message too large")
	ErrBacklog   = errors.New("transport: too much waits to be sent, try again later")
	ErrMalformed = errors.New("transport: malformed reliable segments")
)

// Config is what a channel is made with.
type Config struct {
	// Conv is the conversation number, on which both ends agree.
	Conv uint32
	// MTU is the size of the largest body that Output takes, in bytes.
	MTU int
	// Overhead is how many bytes a datagram has besides its body, headers down to IP included. They count as sent.
	Overhead int
	// Patience is for how long a peer that is out of reach is certainly not given up.
	Patience time.Duration
	// Output is called, from inside Send, Input and Advance, with segments for the peer: at most MTU bytes, valid
	// during the call.
	Output func(segments []byte)
}

// Channel is one end of a reliable channel. It costs nothing until its first message or segment, then
// about 29 KB; what it holds of the peer's is bounded by twice the window in segments, 192 KB. Whatever the peer
// does, an end sends at most 3 bytes for each byte that the peer newly acknowledges, and 64 KiB per second, and gives
// up when it has sent a segment [MaxTransmissions] times.
// It is not safe for concurrent use, but for what [Channel.Receive] returned.
type Channel struct {
	cfg Config

	kcp     *kcp.KCP  // nil until used
	flushAt time.Time // zero: nothing to flush
	settle  int       // flushes still to do although nothing waits for an acknowledgment
	buf     []byte    // the message that Receive returned; nil until one came

	start       time.Time     // what the next two count from
	now         time.Duration // of the call that sends
	progress    time.Duration // when the peer last acknowledged something new
	budget      budget
	outstanding *outstanding
	exhausted   bool
}

// New returns an unused channel.
func New(cfg Config) Channel { return Channel{cfg: cfg} }

// begin makes the state machine.
func (c *Channel) begin(now time.Time) {
	c.start, c.budget, c.outstanding = now, newBudget(now), new(outstanding)
	c.kcp = kcp.NewKCP(c.cfg.Conv, func(buf []byte, size int) { c.emit(buf[:size]) })
	c.kcp.SetMtu(c.cfg.MTU)
	c.kcp.NoDelay(1, int(interval/time.Millisecond), fastResend, noCongestionWindow)
}

// Exhausted reports whether a segment was sent [MaxTransmissions] times without being acknowledged. The channel sends
// nothing more then.
func (c *Channel) Exhausted() bool { return c.exhausted }

// Send queues a copy of the message b and sends what the window allows. It returns [ErrEmpty],
// [ErrTooLarge] or [ErrBacklog] with nothing queued.
func (c *Channel) Send(now time.Time, b []byte) error {
	if len(b) == 0 {
		return ErrEmpty
	}
	if len(b) > MaxMessage {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), MaxMessage)
	}
	if c.kcp == nil {
		c.begin(now)
	}
	if c.kcp.WaitSnd()+c.fragments(len(b)) > MaxBacklog {
		return ErrBacklog
	}
	c.kcp.Send(b)
	c.flush(now)
	return nil
}

// Input takes segments from the peer, as its output function got them. Anything else is [ErrMalformed]
// and changes nothing. Messages may be ready to [Channel.Receive] afterwards.
func (c *Channel) Input(now time.Time, b []byte) error {
	if !c.valid(b) {
		return ErrMalformed
	}
	if c.kcp == nil {
		c.begin(now)
	}
	for s := range segmentsOf(b) {
		if n := c.outstanding.acknowledged(s); n > 0 {
			c.budget.credit(n)
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

// Receive returns the next message and true, or false if none is complete. The message is valid until
// the next call, also while other methods are called. [ErrMalformed] means that the peer's fragments
// make no message: the channel is stuck for good.
func (c *Channel) Receive(now time.Time) ([]byte, bool, error) {
	if c.kcp == nil {
		return nil, false, nil
	}
	size := c.kcp.PeekSize()
	if size < 0 {
		return nil, false, nil
	}
	if size > MaxMessage {
		return nil, false, ErrMalformed
	}
	if c.buf == nil {
		c.buf = make([]byte, MaxMessage)
	}
	n := c.kcp.Recv(c.buf)
	c.scheduleFlush(now)
	return c.buf[:n], true, nil
}

// Advance flushes acknowledgments and segments that are due at now.
func (c *Channel) Advance(now time.Time) {
	if !c.flushAt.IsZero() && !now.Before(c.flushAt) {
		c.flush(now)
	}
}

// Next returns when to call [Channel.Advance], or false while there is nothing to send.
func (c *Channel) Next() (time.Time, bool) { return c.flushAt, !c.flushAt.IsZero() }

// flush sends what KCP finds due, and plans the next flush if there is something left to send or to
// be acknowledged.
func (c *Channel) flush(now time.Time) {
	c.prepare(now)
	c.kcp.Update()
	c.settle = max(c.settle-1, 0)
	c.flushAt = time.Time{}
	if c.kcp.WaitSnd() > 0 || c.settle > 0 {
		c.flushAt = now.Add(interval)
	}
}

// scheduleFlush plans a flush for acknowledgments and window updates, so that those of several
// datagrams go together.
func (c *Channel) scheduleFlush(now time.Time) {
	c.settle = settleFlushes
	if c.flushAt.IsZero() {
		c.flushAt = now.Add(interval)
	}
}

// prepare has KCP begin to send only as many new segments as the budget has bytes for. They wait
// in its queue otherwise.
func (c *Channel) prepare(now time.Time) {
	c.now = now.Sub(c.start)
	c.budget.refill(now)
	room := int(c.budget.bytes) / (c.cfg.MTU + c.cfg.Overhead)
	c.kcp.WndSize(min(max(c.outstanding.held()+room, 1), window), window)
}

// emit sends the segments of a datagram that KCP wants sent: all but retransmissions that come
// too early, and nothing if
// that exceeds the budget. To KCP this is a loss, so it tries again later.
func (c *Channel) emit(b []byte) {
	due := b[:0]
	for s := range segmentsOf(b) {
		if s[offCommand] != kcp.IKCP_CMD_PUSH || c.outstanding.due(c.now, c.progress, c.cfg.Patience, s) {
			due = append(due, s...)
		}
	}
	if c.exhausted || len(due) == 0 || !c.budget.take(len(due)+c.cfg.Overhead) {
		return
	}
	for s := range segmentsOf(due) {
		if s[offCommand] == kcp.IKCP_CMD_PUSH && c.outstanding.sent(c.now, s) == MaxTransmissions {
			c.exhausted = true
		}
	}
	c.cfg.Output(due)
}

// Unacked returns how many segments wait to be sent or acknowledged.
func (c *Channel) Unacked() int {
	if c.kcp == nil {
		return 0
	}
	return c.kcp.WaitSnd()
}
