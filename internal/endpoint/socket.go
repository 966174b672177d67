package endpoint

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// socket is a packet connection that can be replaced while it is in use.
type socket struct {
	current atomic.Pointer[transport.BatchConn]

	mu       sync.Mutex
	deadline time.Time
	closed   bool
}

func newSocket(pc transport.PacketConn) *socket {
	s, b := &socket{}, batched(pc)
	s.current.Store(&b)
	return s
}

// replace continues with another packet connection and closes the current one, or else the other
// one.
func (s *socket) replace(pc transport.PacketConn) error {
	s.mu.Lock()
	err := pc.SetReadDeadline(s.deadline)
	if s.closed {
		err = net.ErrClosed
	}
	b, unused := batched(pc), pc
	if err == nil {
		unused = *s.current.Swap(&b)
	}
	s.mu.Unlock()
	// Nothing can be done about an error of Close. It may take time, while the loop continues.
	_ = unused.Close()
	return err
}

// ReadFrom implements [transport.PacketConn]. Loops call only ReadBatch.
func (s *socket) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	return (*s.current.Load()).ReadFrom(p)
}

// ReadBatch implements [transport.BatchConn]. A read continues on the next packet connection.
func (s *socket) ReadBatch(into []transport.Datagram) (int, error) {
	for {
		pc := s.current.Load()
		n, err := (*pc).ReadBatch(into)
		if err == nil || s.current.Load() == pc {
			return n, err
		}
	}
}

func (s *socket) WriteBatch(out []transport.Datagram) (int, error) {
	return (*s.current.Load()).WriteBatch(out)
}

func (s *socket) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	return (*s.current.Load()).WriteTo(p, to)
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	return (*s.current.Load()).SetReadDeadline(t)
}

func (s *socket) LocalAddr() netip.AddrPort { return (*s.current.Load()).LocalAddr() }

// Close closes the current packet connection, which may take time.
func (s *socket) Close() error {
	s.mu.Lock()
	s.closed = true
	pc := *s.current.Load()
	s.mu.Unlock()
	return pc.Close()
}
