//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batcher reads and writes batches by recvmmsg and sendmmsg. What these work on is made once, and grows to the
// largest batch.
type batcher struct {
	raw   syscall.RawConn
	four  bool // the socket is of the family AF_INET
	reads struct {
		messages
		got   int
		errno syscall.Errno
		call  func(fd uintptr) bool
	}
	writes struct {
		mu sync.Mutex
		messages
		sent, n int // of the messages
		errno   syscall.Errno
		call    func(fd uintptr) bool
	}
}

func (b *batcher) init(socket *net.UDPConn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	b.raw = raw
	b.reads.call, b.writes.call = b.receive, b.send
	var failed error
	err = raw.Control(func(fd uintptr) {
		var family int
		family, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		b.four = family == unix.AF_INET
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("getsockopt", failed)
}

// readBatch waits for datagrams. One goroutine at a time calls it.
func (b *batcher) readBatch(into []Datagram) (int, error) {
	r := &b.reads
	r.grow(len(into))
	for i := range into {
		r.point(i, into[i].Buf)
		r.headers[i].Hdr.Namelen = sockaddrSize
	}
	if err := b.raw.Read(r.call); err != nil {
		return 0, err
	}
	if r.errno != 0 {
		return 0, os.NewSyscallError("recvmmsg", r.errno)
	}
	for i := range into[:r.got] {
		into[i].N = int(r.headers[i].Len)
		into[i].Addr = r.names[i].addr(&r.zones)
	}
	return r.got, nil
}

// receive is one try to read; false means that there is nothing yet.
func (b *batcher) receive(fd uintptr) bool {
	r := &b.reads
	for {
		// MSG_TRUNC makes the size that of the datagram, also if it does not fit.
		r.got, r.errno = r.transfer(unix.SYS_RECVMMSG, fd, 0, r.pending, unix.MSG_TRUNC)
		if r.errno != syscall.EINTR {
			return r.errno != syscall.EAGAIN
		}
	}
}

// writeBatch sends datagrams up to the first that fails.
func (b *batcher) writeBatch(out []Datagram) (int, error) {
	w := &b.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grow(len(out))
	w.sent, w.n, w.errno = 0, 0, 0
	var bad error
	for i := range out {
		var size uint32
		if size, bad = w.names[i].set(out[i].Addr, b.four, &w.zones); bad != nil {
			break
		}
		w.headers[i].Hdr.Namelen = size
		w.point(i, out[i].Bytes())
		w.n++
	}
	if w.n == 0 {
		return 0, bad
	}
	if err := b.raw.Write(w.call); err != nil {
		return w.sent, err
	}
	if w.errno != 0 {
		return w.sent, os.NewSyscallError("sendmmsg", w.errno)
	}
	return w.sent, bad
}

// send writes all that is left; false means that the kernel has no room yet.
func (b *batcher) send(fd uintptr) bool {
	w := &b.writes
	for w.sent < w.n {
		sent, errno := w.transfer(unix.SYS_SENDMMSG, fd, w.sent, w.n, 0)
		switch errno {
		case 0:
			w.sent += sent
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			w.errno = errno
			return true
		}
	}
	return true
}

// message is the kernel's struct mmsghdr.
type message struct {
	Hdr unix.Msghdr
	Len uint32
}

// messages are the arrays that the kernel reads and fills.
type messages struct {
	headers []message
	vectors []unix.Iovec
	names   []sockaddr
	pending int // messages of this call
	zones   zones
}

// grow makes room for n messages, each with its vector and name.
func (m *messages) grow(n int) {
	m.pending = n
	if n <= len(m.headers) {
		return
	}
	m.headers, m.vectors, m.names = make([]message, n), make([]unix.Iovec, n), make([]sockaddr, n)
	for i := range m.headers {
		h := &m.headers[i].Hdr
		h.Name = &m.names[i][0]
		h.Iov = &m.vectors[i]
		h.SetIovlen(1)
	}
}

// point makes p the memory of a message.
func (m *messages) point(i int, p []byte) {
	m.vectors[i].Base = unsafe.SliceData(p)
	m.vectors[i].SetLen(len(p))
}

// transfer is one system call for the messages from first to end, which are not none. It returns how many it
// did. The socket is non-blocking, so it does not wait, and is over in a fraction of a millisecond: Go's scheduler is not
// told of it. It would wake its monitor for each call of a server that is idle otherwise, and that one sleeps and wakes
// several times before it rests again.
func (m *messages) transfer(call, fd uintptr, first, end int, flags uintptr) (int, syscall.Errno) {
	h := m.headers[first:end]
	n, _, errno := unix.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&h[0])), uintptr(len(h)), flags, 0, 0)
	return int(n), errno
}
