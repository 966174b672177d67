package client

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// nextBinding is a binding at a server to which the client may switch. sender.mu of the binding
// guards it.
type nextBinding struct {
	link      *transport.Conn
	request   []byte
	described []int
	asked     time.Time
	pending   int // unanswered requests
	enc       *rpcdelta.Encoder
	refused   error
	granted   bool
}

// prepare binds the RPC at another server, over link, while the current one is in use.
func (b *binding) prepare(link *transport.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = &nextBinding{link: link}
	if b.failed {
		b.next.refused = b.refused
		return
	}
	b.next.request, b.next.refused = b.newRequest(nil)
	link.Wake(time.Now())
}

// abandon forgets the other server.
func (b *binding) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = nil
}

// prepared reports whether the other server has answered, and nothing waits for the current one,
// unless that is dead.
func (b *binding) prepared(dead bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next == nil || (b.next.enc != nil || b.next.refused != nil) && (dead || !b.queued)
}

// uses reports whether the RPC is called over link.
func (b *binding) uses(link *transport.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.link == link
}

// answeredBy handles an answer that arrived over link.
func (b *binding) answeredBy(link *transport.Conn, a *message.BindAnswer) {
	b.mu.Lock()
	current, next := b.link == link, b.next != nil && b.next.link == link
	b.mu.Unlock()
	switch {
	case current:
		b.answered(a)
	case next:
		b.answeredByNext(a)
	}
}

func (b *binding) answeredByNext(a *message.BindAnswer) {
	start, fallback, err := b.agreed(a)
	if err == nil {
		b.compare(a)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.next
	if n == nil || n.enc != nil || n.refused != nil {
		return
	}
	n.pending = max(n.pending-1, 0)
	if err == nil && a.Reason == message.ReasonDescribe {
		described := addDescribed(n.described, a.Ask)
		if len(described) == len(n.described) {
			return
		}
		if n.request, err = b.newRequest(described); err == nil {
			n.described, n.asked = described, time.Time{}
			n.link.Wake(time.Now())
			return
		}
		err = b.wrap(err)
	}
	n.granted = n.granted || a.Reason == message.ReasonNone || a.Reason == message.ReasonNumber
	if err == nil {
		if n.enc, err = rpcdelta.NewEncoder(b.schema, b.encoder(a.Ring, start)); err != nil {
			err = b.wrap(err)
		}
	}
	if n.refused = err; fallback {
		b.stats.PriorFallbacks++
		b.warnFallback(start)
	}
	n.link.Wake(time.Now())
}

// tick sends the request if it is unanswered. Before the round-trip time is known, that to the
// current server, if there is one, is taken instead.
func (n *nextBinding) tick(now time.Time, current *transport.Conn) {
	if n.enc != nil || n.refused != nil {
		return
	}
	rtt := n.link.RTT()
	if rtt == 0 && current != nil {
		rtt = current.RTT()
	}
	wait := requestWait(rtt, n.pending)
	if now.Sub(n.asked) >= wait {
		n.asked = now
		n.pending++
		_ = n.link.Send(n.request) // the next tick repeats it
	}
	n.link.Wake(n.asked.Add(wait))
}

// switchOver continues at the other server. It sends the frames that wait at the current one
// before, unless that is dead. If a reliable one cannot be sent yet, it returns false.
func (b *binding) switchOver(dead bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.next
	if n == nil {
		return true
	}
	if b.queued && !dead {
		if _ = b.transmit(); b.queued { // the next call repeats it
			return false
		}
	}
	if b.enc != nil && !b.queued {
		_ = b.sendHeld() // may be lost as any datagram
	}
	b.stop()
	b.next = nil
	b.link, b.enc, b.asked, b.pending, b.granted = n.link, n.enc, n.asked, n.pending, n.granted
	if b.enc != nil {
		b.enc.LimitRedundancy(b.limits.redundancy)
	}
	if !b.failed {
		b.request, b.described, b.refused = n.request, n.described, n.refused
	}
	b.pace.relink()
	return true
}
