// Package lane carries messages over a simulated link, one way, in virtual time. What is larger than a datagram travels in
// fragments, and is lost with any of them.
package lane

import (
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

const (
	// datagram is the most that UDP carries, seal what a seal takes of it.
	datagram = 1200
	seal     = 16
	// Overhead is what a datagram has beside its contents: headers of IP, UDP and the transport, and the seal.
	Overhead = transport.IPSize + transport.HeaderSize + seal
	// Whole is the largest message of one datagram.
	Whole = datagram - transport.HeaderSize - seal
	// part is how much of a larger one each datagram has, behind a header.
	header = 4
	part   = Whole - header
	// waiting is how many messages may be incomplete at a time.
	waiting = 16
)

// Lane is one direction. It is not safe for concurrent use.
type Lane struct {
	queue *simnet.Queue[fragment]
	link  *simnet.Link
	sent  int // messages
	parts map[int]*message

	// Bytes and Datagrams count what was sent, headers down to IP included.
	Bytes, Datagrams int
}

// fragment is one datagram.
type fragment struct {
	number int // of the message
	index  int
	*message
}

// message is in as many datagrams.
type message struct {
	contents []byte
	datagrams,
	arrived int
	seen []bool
}

// New makes a lane over a link, or gives the error of its Config.
func New(cfg simnet.Config) (*Lane, error) {
	link, err := simnet.NewLink(cfg)
	if err != nil {
		return nil, err
	}
	return &Lane{queue: simnet.NewQueue[fragment](link), link: link, parts: map[int]*message{}}, nil
}

// Set changes the link.
func (l *Lane) Set(cfg simnet.Config) error { return l.link.Set(cfg) }

// Size is what a message of n bytes takes on the way, headers down to IP included.
func Size(n int) int {
	if n <= Whole {
		return n + Overhead
	}
	datagrams := (n + part - 1) / part
	return n + datagrams*(Overhead+header)
}

// Send sends a copy of a message.
func (l *Lane) Send(now time.Duration, contents []byte) {
	m := &message{contents: append([]byte(nil), contents...), datagrams: 1}
	l.sent++
	if len(contents) <= Whole {
		l.push(now, fragment{number: l.sent, message: m}, len(contents)+Overhead)
		return
	}
	m.datagrams = (len(contents) + part - 1) / part
	for i := range m.datagrams {
		l.push(now, fragment{number: l.sent, index: i, message: m}, min(part, len(contents)-i*part)+header+Overhead)
	}
}

func (l *Lane) push(now time.Duration, f fragment, size int) {
	l.queue.Push(now, f, size)
	l.Bytes += size
	l.Datagrams++
}

// Deliver calls f with each message that has arrived by now, and when it did.
func (l *Lane) Deliver(now time.Duration, f func(at time.Duration, contents []byte)) {
	for {
		p, at, ok := l.queue.Pop(now)
		if !ok {
			return
		}
		if p.datagrams == 1 || l.complete(p) {
			f(at, p.contents)
		}
	}
}

// complete says that a fragment was the last one that its message lacked.
func (l *Lane) complete(f fragment) bool {
	m := f.message
	if m.seen == nil {
		m.seen = make([]bool, m.datagrams)
		l.parts[f.number] = m
		delete(l.parts, f.number-waiting)
	}
	if m.seen[f.index] || l.parts[f.number] == nil {
		return false
	}
	m.seen[f.index] = true
	if m.arrived++; m.arrived < m.datagrams {
		return false
	}
	delete(l.parts, f.number)
	return true
}
