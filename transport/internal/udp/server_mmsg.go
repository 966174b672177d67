//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendWait is how long a write waits for room in the kernel's buffer.
const sendWait = 100 * time.Millisecond

// Server is a socket like [Conn], for very many senders. Go's scheduler watches a Conn for as long as it is open, and
// whatever comes, or has left, wakes a thread of it, though nobody reads. It watches a Server's reader alone, by an epoll
// instance of its own around the socket, and not even that while the Server is muted.
type Server struct {
	batcher
	epoll  *os.File // holds the socket open too: that is closed after it
	socket int
	local  netip.AddrPort
	closed atomic.Bool
	one    [1]Datagram // that ReadFrom reads
}

// serve makes a socket a server's, and closes it if that fails.
func serve(c *Conn) (*Server, error) {
	s := &Server{local: c.LocalAddr(), socket: -1}
	s.four = c.four
	err := s.take(c)
	if err = errors.Join(err, c.socket.Close()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// take has the server hold the socket of c.
func (s *Server) take(c *Conn) error {
	var failed error
	err := c.raw.Control(func(fd uintptr) {
		s.socket, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, os.NewSyscallError("fcntl", failed)); err != nil {
		return err
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	err = os.NewSyscallError("fcntl", unix.SetNonblock(poll, true))
	s.epoll = os.NewFile(uintptr(poll), "epoll")
	if err == nil {
		err = os.NewSyscallError("epoll_ctl", s.watch(uintptr(poll), unix.EPOLL_CTL_ADD, unix.EPOLLIN))
	}
	if err != nil {
		return err
	}
	if s.raw, err = s.epoll.SyscallConn(); err != nil {
		return err
	}
	s.reads.call = func(uintptr) bool { return s.receive(uintptr(s.socket)) }
	s.writes.call = func(uintptr) bool { s.sendAll(); return true }
	return nil
}

// watch says which events of the socket count.
func (s *Server) watch(poll uintptr, op int, events uint32) error {
	return unix.EpollCtl(int(poll), op, s.socket, &unix.EpollEvent{Events: events, Fd: int32(s.socket)})
}

// sendAll is [batcher.send] to its end. An epoll instance cannot be waited for until its socket has room, which is
// rare; so the thread waits.
func (s *Server) sendAll() {
	for !s.send(uintptr(s.socket)) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.socket), Events: unix.POLLOUT}}, int(sendWait/time.Millisecond))
		if n == 0 && err == nil {
			s.writes.errno = syscall.EAGAIN
			return
		}
	}
}

// Mute has what comes from now on wake nobody, or again wake who waits for it. A read finds it either way.
func (s *Server) Mute(quiet bool) error {
	events := uint32(unix.EPOLLIN)
	if quiet {
		events = 0
	}
	var failed error
	err := s.raw.Control(func(poll uintptr) { failed = s.watch(poll, unix.EPOLL_CTL_MOD, events) })
	if err != nil {
		return s.failure(err)
	}
	return os.NewSyscallError("epoll_ctl", failed)
}

// ReadBatch is [Conn.ReadBatch].
func (s *Server) ReadBatch(into []Datagram) (int, error) {
	n, err := s.batcher.ReadBatch(into)
	return n, s.failure(err)
}

// WriteBatch is [Conn.WriteBatch].
func (s *Server) WriteBatch(out []Datagram) (int, error) {
	n, err := s.batcher.WriteBatch(out)
	return n, s.failure(err)
}

// ReadFrom is [Conn.ReadFrom].
func (s *Server) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	s.one[0].Buf = p
	if _, err := s.ReadBatch(s.one[:]); err != nil {
		return 0, netip.AddrPort{}, err
	}
	return len(s.one[0].Bytes()), s.one[0].Addr, nil
}

// WriteTo is [Conn.WriteTo].
func (s *Server) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if _, err := s.WriteBatch([]Datagram{{Buf: p, N: len(p), Addr: to}}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// failure is the error of a call of the epoll instance, as a socket would have it.
func (s *Server) failure(err error) error {
	if err != nil && s.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// SetReadDeadline is [Conn.SetReadDeadline].
func (s *Server) SetReadDeadline(t time.Time) error { return s.failure(s.epoll.SetReadDeadline(t)) }

// LocalAddr returns the address that the socket is bound to.
func (s *Server) LocalAddr() netip.AddrPort { return s.local }

// Close is [Conn.Close].
func (s *Server) Close() error {
	if s.closed.Swap(true) {
		return net.ErrClosed
	}
	var err error
	if s.epoll != nil {
		err = s.epoll.Close() // which waits for all calls to end
	}
	if s.socket >= 0 {
		err = errors.Join(err, unix.Close(s.socket))
	}
	return err
}
