package capture

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/internal/record"
)

// queue is a double buffer of records: one buffer is filled while the other is written out.
type queue struct {
	wake  chan struct{}
	lost  atomic.Uint64
	start time.Time

	mu      sync.Mutex
	limit   int // maximum size of filling in bytes
	soft    int // limit for datagrams and their results; the rest is reserved for rarer records
	filling []byte
	other   []byte
	scratch []byte
	missing uint64    // records dropped since the last one that was queued
	dropped time.Time // time of the last dropped record
	gap     bool      // filling has a Lost record
	woken   bool
	closed  bool
}

const (
	// entryHeader is the size of an entry's length (4 bytes) and time since the start (8 bytes).
	// Tag and body follow.
	entryHeader = 4 + 8
	// recordOverhead is the maximum size of a record without data of variable length, in bytes.
	recordOverhead = 64
)

func (q *queue) init(bytes int, start time.Time) {
	q.limit, q.start = bytes/2, start
	q.soft = q.limit - q.limit/8
	q.filling, q.other = make([]byte, 0, q.limit), make([]byte, 0, q.limit)
	q.wake = make(chan struct{}, 1)
}

// begin starts an entry of at most size bytes, for commit to complete. If the buffer would exceed
// limit, the entry is lost. The caller holds mu.
func (q *queue) begin(at time.Time, size, limit int) ([]byte, bool) {
	room := entryHeader + size
	if q.missing != 0 {
		room += entryHeader + recordOverhead
	}
	if q.closed || len(q.filling)+room > limit {
		q.lost.Add(1)
		q.missing++
		q.dropped = at
		q.wakeWriter()
		return nil, false
	}
	if q.missing != 0 {
		q.commitLost(at)
	}
	return q.header(at), true
}

// commitLost stores a Lost record for the missing ones.
func (q *queue) commitLost(at time.Time) {
	lost := record.Lost{Records: q.missing}
	q.missing, q.gap = 0, true
	q.commit(lost.Append(q.header(at)))
}

func (q *queue) header(at time.Time) []byte {
	b := append(q.filling, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(b, uint64(at.Sub(q.start)))
}

// commit stores the buffer to which an entry was appended. The caller holds mu.
func (q *queue) commit(b []byte) {
	begin := len(q.filling)
	binary.LittleEndian.PutUint32(b[begin:], uint32(len(b)-begin-4))
	q.filling = b
	if len(b) > q.limit/2 {
		q.wakeWriter()
	}
}

// wakeWriter wakes the writing goroutine before its next tick.
func (q *queue) wakeWriter() {
	if q.woken {
		return
	}
	q.woken = true
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// swap returns the queued entries, which are valid until the next call.
func (q *queue) swap() (e entries, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed && q.missing != 0 {
		q.commitLost(q.dropped)
	}
	q.filling, q.other = q.other[:0], q.filling
	q.woken = false
	e = entries{rest: q.other, gap: q.gap}
	q.gap = false
	return e, q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.woken = false
	q.wakeWriter()
}

// entries iterates over queued entries.
type entries struct {
	rest []byte
	gap  bool // rest has a Lost record
}

type entry struct {
	at      time.Duration // since the start of the series
	content []byte        // tag and body
}

func (e *entries) next() (entry, bool) {
	if len(e.rest) == 0 {
		return entry{}, false
	}
	size := binary.LittleEndian.Uint32(e.rest)
	b := e.rest[4 : 4+size]
	e.rest = e.rest[4+size:]
	return entry{at: time.Duration(binary.LittleEndian.Uint64(b)), content: b[8:]}, true
}

// count returns the number of entries that next has not returned yet.
func (e entries) count() (n uint64) {
	for _, ok := e.next(); ok; _, ok = e.next() {
		n++
	}
	return n
}
