package replication

import (
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/transport"
)

// maxCarrierInterval is the longest interval between a client's other datagrams with which acks
// wait for the next one.
const maxCarrierInterval = 100 * time.Millisecond

// acks are those of a client's subscriptions that are due. They leave in front of the client's
// other datagrams, or alone. No lock is taken while mu is held, except those of links.
type acks struct {
	mu       sync.Mutex
	carriers message.Carriers
	carrier  Link // of the carriers
	due      []*ack
	buf      []byte
}

// ack is the ack of a subscription. The mutex of acks guards it.
type ack struct {
	link     Link          // of the messages
	interval time.Duration // between datagrams of acks alone
	message  []byte        // the ack that is due: its type, the number of the stream, and its bytes
	sent     time.Time     // the last one
	received int           // bytes of messages since then

	count, bytes uint64 // of those sent
}

// restart prepares an ack for the messages of another offer, or of none.
func (q *acks) restart(a *ack, link Link, interval time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = slices.DeleteFunc(q.due, func(o *ack) bool { return o == a })
	a.link, a.interval, a.sent, a.received = link, interval, time.Time{}, 0
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

// sendAlone sends an ack in a datagram with the others that are due over the link, unless it has to
// wait: because of its rate, or for a datagram that can carry it.
func (q *acks) sendAlone(a *ack, now time.Time) {
	if next := a.sent.Add(a.interval); now.Before(next) {
		a.link.Wake(next)
		return
	}
	if until, ok := q.carriers.Until(now); ok && q.carrier == a.link && !a.pays(now, until.Sub(now)/4) {
		a.link.Wake(until)
		return
	}
	q.buf = q.take(q.buf[:0], a.link, transport.MaxPayload, now)
	_ = a.link.Send(q.buf) // the next ack repeats it
}

// pays reports whether an ack is worth a datagram of its own, instead of waiting. During that time
// the server would send messages relative to a baseline that is older by the time since the last
// ack. Their size is taken to grow as the square root of the baseline's age.
func (a *ack) pays(now time.Time, wait time.Duration) bool {
	age := a.link.RTT() + now.Sub(a.sent)
	more := float64(a.received) * float64(wait) / float64(2*age)
	return more > float64(int(a.link.Overhead())+len(a.message))
}

// take appends the acks that are due over a link, as far as there is room, and counts them.
func (q *acks) take(dst []byte, link Link, room int, now time.Time) []byte {
	waiting := q.due[:0]
	for _, a := range q.due {
		if a.link != link || len(a.message) > room {
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
func (q *acks) addTo(st *Stats, a *ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	st.Acks += a.count
	st.AckBytes += a.bytes
}

// SendWithAcks sends a message of the client that is not about worlds, at most transport.MaxPayload
// bytes. Acks that are due precede it if there is room.
func (all *Subscriptions) SendWithAcks(link Link, msg []byte, now time.Time) error {
	q := &all.acks
	q.mu.Lock()
	defer q.mu.Unlock()
	room := transport.MaxPayload - len(msg)
	if room < message.MaxDownAck {
		return link.Send(msg)
	}
	q.carriers.Left(now, maxCarrierInterval)
	q.carrier = link
	if len(q.due) == 0 {
		return link.Send(msg)
	}
	q.buf = append(q.take(q.buf[:0], link, room, now), msg...)
	return link.Send(q.buf)
}
