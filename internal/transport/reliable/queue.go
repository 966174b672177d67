package reliable

import (
	"fmt"
	"slices"
	"sync/atomic"
)

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

// queue contains the bytes of the stream that are in no segment yet, and counts all unacknowledged
// bytes and messages. A message is acknowledged with its last byte.
type queue struct {
	b        []byte
	head     int            // offset of the first byte in b that is in no segment
	end      int            // offset of the first message in b that begins in no segment
	bytes    int            // unacknowledged bytes, including those in segments
	messages int            // unacknowledged messages
	next     uint32         // sequence number of the next segment
	ends     [window]uint16 // messages that end in the last segments, by sequence number
}

func (q *queue) len() int { return len(q.b) - q.head }

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

// push appends a message to the stream. The caller has reserved its room.
func (c *Channel) push(b []byte) {
	q := c.queue
	q.messages++
	if c.cfg.Limits != nil {
		q.bytes += len(b) + sizeOf(len(b))
	}
	q.b = AppendMessage(q.b, b)
}

// feed moves the bytes that may be sent now to the state machine, in as few segments as possible.
// Messages of a paced channel do not share segments: a small segment measures the round-trip time
// without the time that a full segment takes on a slow path.
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

// cut moves n bytes to the next segment.
func (q *queue) cut(n int) {
	ends := uint16(0)
	if to := q.head + n; q.end > q.head && q.end <= to {
		ends = 1
	}
	for q.head += n; q.end < q.head; {
		n, size, _ := parseSize(q.b[q.end:])
		if q.end += size + n; q.end <= q.head {
			ends++
		}
	}
	q.ends[q.next%window] = ends
	q.next++
}

// Drop releases the room of all unacknowledged messages. The channel must not be used afterwards.
func (c *Channel) Drop() {
	c.free(c.waiting())
	c.cfg.Limits = nil
}
