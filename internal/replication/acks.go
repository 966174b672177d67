package replication

import (
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

// maxCarrierInterval is the longest interval between a client's other datagrams with which acks
// wait for the next one.
const maxCarrierInterval = 100 * time.Millisecond

// acks are those of the worlds of a server that are due. They leave in front of the client's other
// datagrams to it, or alone. No lock is taken while mu is held, except those of the link.
type acks struct {
	link Link

	mu       sync.Mutex
	carriers message.Carriers
	due      []*ack
	buf      []byte
}

// ack is the ack of a world. The mutex of acks guards it.
type ack struct {
	interval time.Duration // between datagrams of acks alone
	message  []byte        // the ack that is due: its type, the number of the stream, and its bytes
	sent     time.Time     // the last one
	received int           // bytes of messages since then

	count, bytes uint64 // of those sent
}

// forget drops an ack that is due.
func (q *acks) forget(a *ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = slices.DeleteFunc(q.due, func(o *ack) bool { return o == a })
}

// put makes an ack of all messages so far due, the last of which has size bytes.
func (q *acks) put(a *ack, message []byte, size int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.message = append(a.message[:0], message...)
	a.received += size
	if !slices.Contains(q.due, a) {
		q.due = append(q.due, a)
	}
	q.sendAlone(a, now)
}

// tick sends an ack that is due, unless it has to wait.
func (q *acks) tick(a *ack, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.due, a) {
		q.sendAlone(a, now)
	}
}

// sendAlone sends an ack in a datagram with the others that are due, unless it has to
// wait: because of its rate, or for a datagram that can carry it.
func (q *acks) sendAlone(a *ack, now time.Time) {
	if next := a.sent.Add(a.interval); now.Before(next) {
		q.link.Wake(next)
		return
	}
	if until, ok := q.carriers.Until(now); ok && !q.pays(a, now, until.Sub(now)/4) {
		q.link.Wake(until)
		return
	}
	q.buf = q.take(q.buf[:0], transport.MaxPayload, now)
	_ = q.link.Send(q.buf) // the next ack repeats it
}

// pays reports whether an ack is worth a datagram of its own, instead of waiting. During that time
// the server would send messages relative to a baseline that is older by the time since the last
// ack. Their size is taken to grow as the square root of the baseline's age.
func (q *acks) pays(a *ack, now time.Time, wait time.Duration) bool {
	age := q.link.RTT() + now.Sub(a.sent)
	more := float64(a.received) * float64(wait) / float64(2*age)
	return more > float64(int(q.link.Overhead())+len(a.message))
}

// take appends the acks that are due, as far as there is room, and counts them.
func (q *acks) take(dst []byte, room int, now time.Time) []byte {
	waiting := q.due[:0]
	for _, a := range q.due {
		if len(a.message) > room {
			waiting = append(waiting, a)
			continue
		}
		dst, room = append(dst, a.message...), room-len(a.message)
		a.sent, a.received = now, 0
		a.count++
		a.bytes += uint64(len(a.message))
	}
	clear(q.due[len(waiting):])
	q.due = waiting
	return dst
}

// addTo adds the counts of an ack.
func (q *acks) addTo(st *session.ReplicationStats, a *ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.Acks += a.count
	st.AckBytes += a.bytes
}
