package reliable

import "sync/atomic"

// Limits bounds the bytes of messages that wait to be sent or acknowledged, for each channel and
// for all channels that share it. It is safe for concurrent use.
type Limits struct {
	each, all int
	used      atomic.Int64
}

// NewLimits returns limits in bytes: each for one channel, all for all channels together.
func NewLimits(each, all int) *Limits { return &Limits{each: each, all: all} }

func (l *Limits) take(n int) bool {
	if l.used.Add(int64(n)) <= int64(l.all) {
		return true
	}
	l.used.Add(int64(-n))
	return false
}

// queue contains the bytes of the stream that are not in a segment yet, and counts all
// unacknowledged bytes and messages. A message counts as acknowledged with its last byte.
type queue struct {
	b        []byte
	head     int            // offset in b of the first byte that is not in a segment
	end      int            // offset in b of the first message that does not begin in a segment
	bytes    int            // unacknowledged bytes, including those in segments
	messages int            // unacknowledged messages
	next     uint32         // sequence number of the next segment
	ends     [window]uint16 // number of messages that end in each of the last segments, by sequence number
}

func (q *queue) len() int { return len(q.b) - q.head }

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
