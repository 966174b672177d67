package ds

import (
	"errors"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/schema"
)

var errQueueFull = errors.New("ds: too many frames wait for Poll")

// queue holds what waits for Poll, in the order in which it came. Values lie in
// the inboxes of their RPCs, so that each is stored as its own type and nothing
// is allocated once warm.
type queue struct {
	mu      sync.Mutex
	share   share
	waiting []waiter
	polling bool // until all that was taken has run, perhaps by several Polls

	// Of Poll alone:
	running []waiter
	next    int // of running
}

// waiter is one thing to be done by Poll. take is called under the queue's lock
// once for all that waits, run without it.
type waiter interface {
	take()
	run()
}

// call is a callback that waits.
type call func()

func (c call) take() {}
func (c call) run()  { c() }

// push adds a callback, which is never refused: there are few.
func (q *queue) push(w waiter) {
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
}

// joined says that there are so many players more.
func (q *queue) joined(n int) {
	q.mu.Lock()
	q.share.players += n
	q.mu.Unlock()
}

// pushFor adds what a player sent, of so many bytes, if there is room for it.
func (q *queue) pushFor(p *Player, w waiter, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.share.admit(&p.waiting, size) {
		return false
	}
	q.waiting = append(q.waiting, w)
	return true
}

// run takes what waits, and runs it. All that was taken before has run.
func (q *queue) run() int {
	q.mu.Lock()
	q.share.taken()
	q.polling = true
	q.waiting, q.running = q.running[:0], q.waiting
	for _, w := range q.running {
		w.take()
	}
	q.mu.Unlock()
	return q.drain()
}

// drain runs what was taken and has not run yet, and returns its number. If it does not return, as
// a handler has ended the goroutine, the next call goes on after that handler.
func (q *queue) drain() (n int) {
	for ; q.next < len(q.running); n++ {
		w := q.running[q.next]
		q.next++
		w.run()
	}
	clear(q.running) // release the players
	q.running, q.next = q.running[:0], 0
	q.mu.Lock()
	q.polling = false
	q.mu.Unlock()
	return n
}

// idle says that nothing waits for Poll nor runs there.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.polling
}

// inbox holds the frames of one RPC that wait for Poll.
type inbox[T any] struct {
	handler *handler[T]
	queue   *queue
	size    int       // bytes of a waiting frame without its byte strings
	waiting []item[T] // guarded by the queue's lock
	running []item[T] // of Poll alone, as the rest
	poll    uint64    // in which running was filled
	next    int       // of running
}

type item[T any] struct {
	player  *Player
	binding *binding
	frame   Frame[T]
}

func (b *inbox[T]) deliver(p *Player, from *binding, d *rpcdelta.Delivery, at time.Time) error {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	if !b.queue.share.admit(&p.waiting, b.bytes(d.Frame)) {
		return errQueueFull
	}
	n := len(b.waiting)
	if n == cap(b.waiting) {
		b.waiting = append(b.waiting, item[T]{})[:n]
	}
	longer := b.waiting[:n+1] // with the byte slices of the value that lay there
	it := &longer[n]
	if err := b.handler.restore(&it.frame.Value, d.Frame); err != nil { // or a type's own method ends the goroutine
		return err
	}
	b.waiting = longer
	it.player, it.binding = p, from
	it.frame.Seq, it.frame.Missed, it.frame.Late, it.frame.Redundant, it.frame.Received = d.Seq, d.Missed, d.Late, older(d), at
	b.queue.waiting = append(b.queue.waiting, b)
	return nil
}

// bytes is what a frame takes while it waits.
func (b *inbox[T]) bytes(f *schema.Frame) int {
	n := b.size
	for _, s := range f.Bytes {
		n += len(s)
	}
	return n
}

func (b *inbox[T]) take() {
	if b.poll != b.queue.share.polls { // it is the first call of this Poll
		b.waiting, b.running = b.running[:0], b.waiting
		b.poll, b.next = b.queue.share.polls, 0
	}
}

func (b *inbox[T]) run() {
	it := &b.running[b.next]
	b.next++
	p, from := it.player, it.binding
	it.player, it.binding = nil, nil
	b.handler.call(p, from, &it.frame)
}
