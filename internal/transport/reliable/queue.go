package reliable

import "sync/atomic"

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
