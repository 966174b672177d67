package simnet

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

const (
	// maxMail is the maximum number of packets in a mailbox, like a socket's buffer.
	maxMail = 1 << 14
	// overhead is the size of IPv4 and UDP headers, for links with a rate.
	overhead = 28
	// maxPacket is the maximum size of a packet in bytes; larger ones are truncated.
	maxPacket = 1 << 16
)

// packet is a packet in transit or received.
type packet struct {
	addr netip.AddrPort // source or destination
	data []byte         // slice of buffers
}

// mailbox contains packets until they arrive. One goroutine at a time takes packets; any number may
// add them.
type mailbox struct {
	clock   clock
	changed chan struct{} // contains a token if take has to check again
	timer   *time.Timer   // wakes take at the next arrival or the deadline

	mu       sync.Mutex
	mail     schedule[packet]
	deadline time.Duration
	closed   bool
}

func newMailbox(c clock) *mailbox {
	return &mailbox{clock: c, changed: make(chan struct{}, 1), timer: newTimer(), deadline: forever}
}

// put adds a copy of data that arrives at the time at. If the mailbox is full or closed, the packet
// is lost.
func (m *mailbox) put(at time.Duration, addr netip.AddrPort, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.mail.len() >= maxMail {
		return
	}
	m.mail.add(at, packet{addr, append(buffers.get(), data...)})
	m.wake()
}

// take waits for the next packet. It returns os.ErrDeadlineExceeded at the deadline, and
// net.ErrClosed when the mailbox is closed and there is no packet left. The caller returns the
// packet's data to buffers.
func (m *mailbox) take() (packet, error) {
	for {
		p, wait, err := m.poll()
		if err != nil || p.data != nil {
			return p, err
		}
		m.timer.Reset(wait)
		select {
		case <-m.changed:
		case <-m.timer.C:
		}
		m.timer.Stop()
	}
}

// read copies the next packet to p, for ReadFrom.
func (m *mailbox) read(p []byte) (int, netip.AddrPort, error) {
	got, err := m.take()
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	n := copy(p, got.data)
	buffers.put(got.data)
	return n, got.addr, nil
}

// poll returns a packet, an error, or the time to wait for one.
func (m *mailbox) poll() (p packet, wait time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.now()
	if now >= m.deadline {
		return packet{}, 0, os.ErrDeadlineExceeded
	}
	at, ok := m.mail.next()
	switch {
	case !ok && m.closed:
		return packet{}, 0, net.ErrClosed
	case !ok:
		return packet{}, m.deadline - now, nil
	case at > now:
		return packet{}, min(m.deadline, at) - now, nil
	}
	p, _ = m.mail.remove()
	return p, 0, nil
}

// setDeadline sets the deadline of take; the zero time means none.
func (m *mailbox) setDeadline(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deadline = forever
	if !t.IsZero() {
		m.deadline = m.clock.at(t)
	}
	m.wake()
}

// close rejects further packets. Existing ones can still be taken, unless they are discarded.
func (m *mailbox) close(discard bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if discard {
		m.mail = schedule[packet]{}
	}
	m.wake()
}

// wake makes take check again.
func (m *mailbox) wake() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// clock is the clock of packet connections: the process's, or under testing/synctest the bubble's.
type clock struct{ start time.Time }

func newClock() clock {
	return clock{time.Now()} //nolint:forbidigo // packet connections work in the time of their callers
}

// now returns the time since the clock's start.
func (c clock) now() time.Duration {
	return time.Since(c.start) //nolint:forbidigo // see newClock
}

// at converts a time of day.
func (c clock) at(t time.Time) time.Duration { return t.Sub(c.start) }

// newTimer returns a stopped timer.
func newTimer() *time.Timer {
	t := time.NewTimer(forever) //nolint:forbidigo // see newClock
	t.Stop()
	return t
}

// forever is longer than any delay.
const forever time.Duration = 1 << 62

// buffers contains unused memory for packets.
var buffers freeList

// freeList is a list of empty slices. (A sync.Pool would allocate for each slice that is put in.)
type freeList struct {
	mu   sync.Mutex
	free [][]byte
}

const (
	maxFree    = 1024
	bufferSize = 1500
)

func (f *freeList) get() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.free) - 1
	if last < 0 {
		return make([]byte, 0, bufferSize)
	}
	b := f.free[last]
	f.free = f.free[:last]
	return b
}

func (f *freeList) put(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) < maxFree && cap(b) <= bufferSize {
		f.free = append(f.free, b[:0])
	}
}
