package capture

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// queue holds records until they are written: two buffers, one of which fills while the other is written out.
type queue struct {
	wake  chan struct{}
	lost  atomic.Uint64
	start time.Time

	mu      sync.Mutex
	limit   int // of filling
	soft    int // of it what datagrams may take; the rest is for what they cannot be read without
	filling []byte
	other   []byte
	spare   []byte
	missing uint64 // records that were lost since the last one
	woken   bool
	closed  bool
}

// An entry of the queue: its length (4 bytes), its time since the start (8), then tag and body.
const entryHead = 4 + 8

// recordHead is more than a record takes besides what of a datagram or message is its body.
const recordHead = 64

func (q *queue) init(bytes int, start time.Time) {
	q.limit, q.start = bytes/2, start
	q.soft = q.limit - q.limit/8
	q.filling, q.other = make([]byte, 0, q.limit), make([]byte, 0, q.limit)
	q.wake = make(chan struct{}, 1)
}

// begin begins an entry of at most so many bytes, if that leaves the buffer below the limit; else it is lost. The
// lock is held until commit.
func (q *queue) begin(at time.Time, size, limit int) ([]byte, bool) {
	room := entryHead + size
	if q.missing != 0 {
		room += entryHead + recordHead
	}
	if q.closed || len(q.filling)+room > limit {
		q.lost.Add(1)
		q.missing++
		q.rouse()
		return nil, false
	}
	if q.missing != 0 {
		lost := Lost{Records: q.missing}
		q.missing = 0
		q.commit(lost.append(append(q.head(at), byte(tagLost))))
	}
	return q.head(at), true
}

func (q *queue) head(at time.Time) []byte {
	b := append(q.filling, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(b, uint64(at.Sub(q.start)))
}

// commit takes the buffer with the entry behind what was in it.
func (q *queue) commit(b []byte) {
	begin := len(q.filling)
	binary.LittleEndian.PutUint32(b[begin:], uint32(len(b)-begin-4))
	q.filling = b
	if len(b) > q.limit/2 {
		q.rouse()
	}
}

// rouse wakes the writing goroutine before its time.
func (q *queue) rouse() {
	if q.woken {
		return
	}
	q.woken = true
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take gives what is queued, valid until the next call, and whether nothing more will come.
func (q *queue) take() (e entries, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.filling, q.other = q.other[:0], q.filling
	q.woken = false
	e = entries{rest: q.other}
	if q.closed && q.missing != 0 {
		e.missing = q.missing
		q.missing = 0
	}
	return e, q.closed
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.woken = false
	q.rouse()
}

// entries are what take gave.
type entries struct {
	rest    []byte
	missing uint64 // records after them that were lost
}

// entry is one of them: tag and body.
type entry struct {
	at   time.Duration
	body []byte
}

func (e *entries) next() (entry, bool) {
	if len(e.rest) == 0 {
		if e.missing == 0 {
			return entry{}, false
		}
		lost := Lost{Records: e.missing}
		e.missing = 0
		return entry{body: lost.append([]byte{byte(tagLost)})}, true
	}
	size := binary.LittleEndian.Uint32(e.rest)
	b := e.rest[4 : 4+size]
	e.rest = e.rest[4+size:]
	return entry{at: time.Duration(binary.LittleEndian.Uint64(b)), body: b[8:]}, true
}

// count is how many there are.
func (e entries) count() (n uint64) {
	for _, ok := e.next(); ok; _, ok = e.next() {
		n++
	}
	return n
}
