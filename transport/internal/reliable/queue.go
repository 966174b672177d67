package reliable

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// maxSegments is the maximum number of segments in the state machine. Further messages wait in the
// queue, where a small message takes less memory than a segment.
const maxSegments = 2 * window

// queueHeader is the size in bytes of the header of a message in the queue, which counts with it.
const queueHeader = 2

// Limits bounds the bytes of messages that wait to be sent or acknowledged, for each channel and
// for all channels that share it. It is safe for concurrent use.
type Limits struct {
	each, all int
	used      atomic.Int64
}

// NewLimits returns limits of each bytes per channel, and of all bytes for all channels together.
func NewLimits(each, all int) *Limits { return &Limits{each: each, all: all} }

func (l *Limits) take(n int) bool {
	if l.used.Add(int64(n)) <= int64(l.all) {
		return true
	}
	l.used.Add(int64(-n))
	return false
}

// queue contains the messages that wait for room in the state machine, in order, and counts the
// bytes of all unacknowledged messages.
type queue struct {
	b        []byte // messages, each preceded by its size as a u16
	head     int    // offset of the first message in b
	segments int    // number of segments that the messages in b need
	bytes    int    // size of all unacknowledged messages, including the headers in b
}

// reserve reserves room for a message of n bytes. It returns an error that wraps ErrBacklog if
// there is none.
func (c *Channel) reserve(n int) error {
	l, size, waiting := c.cfg.Limits, n+queueHeader, c.waiting()
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

// waiting returns the size of all unacknowledged messages in bytes.
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
		room = min(l.each-c.waiting(), l.all-int(l.used.Load())) - queueHeader
	}
	return max(room, 0)
}

// push queues a message. The caller has reserved its room.
func (c *Channel) push(b []byte) {
	q := c.queue
	if c.cfg.Limits != nil {
		q.bytes += len(b) + queueHeader
	}
	q.b = append(binary.LittleEndian.AppendUint16(q.b, uint16(len(b))), b...)
	q.segments += c.fragments(len(b))
}

// feed moves messages from the queue to the state machine, up to maxSegments segments.
func (c *Channel) feed() {
	q := c.queue
	for q.head < len(q.b) {
		n := int(binary.LittleEndian.Uint16(q.b[q.head:]))
		segments := c.fragments(n)
		if c.kcp.WaitSnd()+segments > maxSegments {
			break
		}
		start := q.head + queueHeader
		c.kcp.Send(q.b[start : start+n])
		c.free(queueHeader)
		q.segments -= segments
		q.head = start + n
	}
	switch {
	case q.head == len(q.b):
		q.b, q.head = nil, 0
	case q.head > len(q.b)/2:
		q.b, q.head = q.b[:copy(q.b, q.b[q.head:])], 0
	}
}

// Drop releases the room of all unacknowledged messages. The channel must not be used afterwards.
func (c *Channel) Drop() {
	c.free(c.waiting())
	c.cfg.Limits = nil
}
