package reliable

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// maxSegments is the maximum number of segments in the state machine. Further messages wait in the
// queue, where a small one takes little memory.
const maxSegments = 2 * window

// queueHeader is the size in bytes of the header of a message in the queue, which counts with it.
const queueHeader = 2

// Limits limit the bytes of messages that wait to be sent or acknowledged. Channels may share them.
// They are safe for concurrent use.
type Limits struct {
	each, all int
	used      atomic.Int64
}

// NewLimits returns limits of so many bytes for each channel, and for all together.
func NewLimits(each, all int) *Limits { return &Limits{each: each, all: all} }

func (l *Limits) take(n int) bool {
	if l.used.Add(int64(n)) <= int64(l.all) {
		return true
	}
	l.used.Add(int64(-n))
	return false
}

// queue contains the messages that wait for room in the state machine, in order, and counts those
// that were not acknowledged.
type queue struct {
	b        []byte // messages, each after its size as a u16
	head     int    // of the first one in b
	segments int    // of the messages in b
	bytes    int    // of all messages that are not acknowledged, with the headers of those in b
}

// reserve reserves the room of a message of n bytes.
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

// waiting returns the number of bytes that are not acknowledged.
func (c *Channel) waiting() int {
	if c.queue == nil {
		return 0
	}
	return c.queue.bytes
}

// free releases the room of so many bytes.
func (c *Channel) free(n int) {
	if l := c.cfg.Limits; l != nil && c.queue != nil {
		c.queue.bytes -= n
		l.used.Add(int64(-n))
	}
}

// Room returns the size in bytes of the largest message that [Channel.Send] has room for now, 0 if
// there is none.
func (c *Channel) Room() int {
	room := MaxMessage
	if l := c.cfg.Limits; l != nil {
		room = min(l.each-c.waiting(), l.all-int(l.used.Load())) - queueHeader
	}
	return max(room, 0)
}

// push queues a message, for which there is room.
func (c *Channel) push(b []byte) {
	q := c.queue
	if c.cfg.Limits != nil {
		q.bytes += len(b) + queueHeader
	}
	q.b = append(binary.LittleEndian.AppendUint16(q.b, uint16(len(b))), b...)
	q.segments += c.fragments(len(b))
}

// feed passes messages on to the state machine, as many as it has room for.
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

// Drop releases the room of everything that was not acknowledged. The channel cannot be used
// afterwards.
func (c *Channel) Drop() {
	c.free(c.waiting())
	c.cfg.Limits = nil
}
