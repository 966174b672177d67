package transport

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	// maxHanded is how many datagrams wait for a shard at most, of those that came to others.
	maxHanded = 1024
	// handedMemory is how much memory there is for them, in bytes.
	handedMemory = maxHanded * outboxShare
)

// mailbox is what other shards have left for one. The zero value is empty. It is safe for concurrent use.
type mailbox struct {
	filled atomic.Bool // something may be in it

	mu   sync.Mutex
	mail mail
	read mail // what take returned last, of the taker alone
}

// mail is what a mailbox holds.
type mail struct {
	calls  []func(now time.Time) // few: for beginnings, moves and ends
	handed []handed
	memory []byte
}

// handed is a datagram for a connection that came to another shard.
type handed struct {
	conn *Conn
	via  *shard
	datagram
}

// post leaves a call, and reports whether it is the first thing in the box.
func (m *mailbox) post(f func(now time.Time)) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail.calls = append(m.mail.calls, f)
	return !m.filled.Swap(true)
}

// put leaves a copy of a datagram if there is room. It also reports whether it is the first thing in the box.
func (m *mailbox) put(h handed) (first, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := &m.mail
	if in.memory == nil {
		in.memory = make([]byte, 0, handedMemory)
	}
	if len(in.handed) == maxHanded || len(h.b) > cap(in.memory)-len(in.memory) {
		return false, false
	}
	start := len(in.memory)
	in.memory = append(in.memory, h.b...)
	h.b = in.memory[start:len(in.memory):len(in.memory)]
	in.handed = append(in.handed, h)
	return !m.filled.Swap(true), true
}

// take empties the box. What it returns is valid until the next call.
func (m *mailbox) take() *mail {
	m.read.clear()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filled.Store(false)
	m.mail, m.read = m.read, m.mail
	return &m.read
}

// clear empties mail, and keeps its memory.
func (m *mail) clear() {
	clear(m.calls)
	clear(m.handed)
	m.calls, m.handed, m.memory = m.calls[:0], m.handed[:0], m.memory[:0]
}

// handOver leaves a datagram to the shard that its connection belongs to.
func (s *shard) handOver(c *Conn, d datagram) {
	first, ok := c.shard.mailbox.put(handed{conn: c, via: s, datagram: d})
	if !ok {
		s.counters.overrun.Add(1)
		return
	}
	s.counters.handedOver.Add(1)
	if first {
		c.shard.rouse()
	}
}

// have has a shard do something in its own goroutine: at once if it is this one.
func (s *shard) have(now time.Time, other *shard, f func(now time.Time)) {
	if other == s {
		f(now)
		return
	}
	if other.mailbox.post(f) {
		other.rouse()
	}
}

// take does what other shards have left, and publishes what it and the batch before it have brought.
func (s *shard) take(now time.Time) {
	if s.mailbox.filled.Load() {
		s.empty(now)
	}
	s.publish()
}

// empty takes what is in the mailbox.
func (s *shard) empty(now time.Time) {
	mail := s.mailbox.take()
	for _, f := range mail.calls {
		f(now)
	}
	for i := range mail.handed {
		if s.stopped.Load() {
			break
		}
		s.takeOver(now, &mail.handed[i])
	}
	mail.clear() // let go of connections
}

// takeOver takes a datagram that another shard has left; its connection may be over by now.
func (s *shard) takeOver(now time.Time, h *handed) {
	if header, err := wire.ParseHeader(h.b); err == nil && h.conn.life != dead {
		s.give(now, h.conn, h.datagram, header, h.via)
		return
	}
	if header, err := wire.ParseHeader(h.b); err == nil { // it was none when it was left
		s.unknown(now, h.datagram, header)
	}
}
