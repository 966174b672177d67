package replication

import (
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/transport"
)

// maxCarrierInterval limits the measured interval between the client's other datagrams. Acks wait
// for the next such datagram, at most two intervals.
const maxCarrierInterval = 100 * time.Millisecond

// acks contains the due acks of the worlds of one server. They are piggybacked on the client's
// other datagrams to the server, or sent in datagrams of their own. While mu is held, no lock is
// taken except the link's.
type acks struct {
	link Link

	mu       sync.Mutex
	carriers message.Carriers
	due      []*ack // in the order in which they became due
	buf      []byte
}

// ack is the ack of one world. The mutex of acks guards it.
type ack struct {
	interval time.Duration // minimum time between datagrams that contain only acks
	message  []byte        // encoded ack, with its message type and the number of the stream
	sent     time.Time     // time of the last ack
	received int           // bytes of messages since the last ack

	count, bytes uint64 // number and bytes of the acks sent
}

// forget removes an ack that is due.
func (q *acks) forget(a *ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = slices.DeleteFunc(q.due, func(o *ack) bool { return o == a })
}

// put makes an ack of all received messages due. size is the size of the last message, in bytes.
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

// tick sends an ack if it is due and need not wait.
func (q *acks) tick(a *ack, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.due, a) {
		q.sendAlone(a, now)
	}
}

// sendAlone sends all due acks in a datagram of their own, unless ack a has to wait. It waits until
// its interval has passed, and for a datagram on which it can be piggybacked.
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

// pays reports whether the benefit of an ack justifies a datagram of its own now. While the ack
// waits, the server codes messages against an older baseline. Their size is assumed to grow as the
// square root of the baseline's age.
func (q *acks) pays(a *ack, now time.Time, wait time.Duration) bool {
	age := q.link.RTT() + now.Sub(a.sent)
	more := float64(a.received) * float64(wait) / float64(2*age)
	return more > float64(int(q.link.Overhead())+len(a.message))
}

// take appends the due acks that fit in room bytes, counts them, and removes them from due.
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

// addTo adds the counts of an ack to st.
func (q *acks) addTo(st *Stats, a *ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.Acks += a.count
	st.AckBytes += a.bytes
}
