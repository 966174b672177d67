package endpoint

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxForwarded is the maximum number of forwarded datagrams that wait for a shard.
	maxForwarded = 1024
	// forwardedMemory is the memory for them, in bytes.
	forwardedMemory = maxForwarded * 256 // most are much smaller than a full datagram
)

// mailbox contains the datagrams and tasks that other shards have queued for a shard. The zero
// value is empty. It is safe for concurrent use.
type mailbox struct {
	filled atomic.Bool // the mailbox may be non-empty

	mu   sync.Mutex
	mail mail
	read mail // returned by the last take; used only by its caller
}

type mail struct {
	calls     []func(now time.Time) // few: for starts, migrations and ends of connections
	forwarded []forwarded
	memory    []byte
}

// forwarded is a datagram for a connection of another shard than via, at which it arrived.
type forwarded struct {
	conn *Conn
	via  *shard
	datagram
}

// post adds a call, and reports whether the mailbox was empty.
func (m *mailbox) post(f func(now time.Time)) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mail.calls = append(m.mail.calls, f)
	return !m.filled.Swap(true)
}

// put adds a copy of a datagram if there is room, and reports whether the mailbox was empty.
func (m *mailbox) put(f forwarded) (first, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := &m.mail
	if in.memory == nil {
		in.memory = make([]byte, 0, forwardedMemory)
	}
	if len(in.forwarded) == maxForwarded || len(f.b) > cap(in.memory)-len(in.memory) {
		return false, false
	}
	start := len(in.memory)
	in.memory = append(in.memory, f.b...)
	f.b = in.memory[start:len(in.memory):len(in.memory)]
	in.forwarded = append(in.forwarded, f)
	return !m.filled.Swap(true), true
}

// take empties the mailbox. The result is valid until the next call.
func (m *mailbox) take() *mail {
	m.read.clear()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filled.Store(false)
	m.mail, m.read = m.read, m.mail
	return &m.read
}

func (m *mail) clear() {
	clear(m.calls)
	clear(m.forwarded)
	m.calls, m.forwarded, m.memory = m.calls[:0], m.forwarded[:0], m.memory[:0]
}

// dirtyConns are connections that the next tick has to look at, each once. It is safe for
// concurrent use.
type dirtyConns struct {
	mu           sync.Mutex
	conns, spare []*Conn
}

func (d *dirtyConns) add(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !c.dirty {
		c.dirty = true
		d.conns = append(d.conns, c)
	}
}

// take returns the connections that were added since the last call. The result is valid until the
// call after the next.
func (d *dirtyConns) take() []*Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.spare) // the result of the last call
	taken := d.conns
	for _, c := range taken {
		c.dirty = false
	}
	d.conns, d.spare = d.spare[:0], taken
	return taken
}
