//go:build linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package udp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batcher reads and writes batches by recvmmsg and sendmmsg. Their arguments are allocated once and
// grow to the largest batch.
type batcher struct {
	refused atomic.Bool // see [Conn.ReportRefused]

	raw   syscall.RawConn
	four  bool // whether the socket has the family AF_INET
	local bool // whether control messages contain the destination of received datagrams
	reads struct {
		messages
		got   int
		errno syscall.Errno
		call  func(fd uintptr) bool
	}
	writes struct {
		mu sync.Mutex
		messages
		sent, n int // messages sent, and messages in all
		errno   syscall.Errno
		call    func(fd uintptr) bool
	}
}

func (b *batcher) init(socket *net.UDPConn) (err error) {
	addr := socket.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	b.four, b.local = addr.Is4(), addr.IsUnspecified()
	b.reads.call, b.writes.call = b.receive, b.send
	b.raw, err = socket.SyscallConn()
	return err
}

// readBatch waits for datagrams. One goroutine at a time calls it.
func (b *batcher) readBatch(into []Datagram) (int, error) {
	r := &b.reads
	r.grow(len(into))
	for i := range into {
		r.point(i, into[i].Buf)
		r.headers[i].Hdr.Namelen = sockaddrSize
		if b.local {
			r.control(i, controlSize)
		}
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
		into[i].Local = r.controls[i].local(r.headers[i].Hdr.Controllen)
	}
	return r.got, nil
}

// receive tries once to read. It returns false if no datagram is available.
func (b *batcher) receive(fd uintptr) bool {
	r := &b.reads
	for {
		// MSG_TRUNC returns the size of a datagram even if it does not fit.
		r.got, r.errno = r.transfer(unix.SYS_RECVMMSG, fd, 0, r.pending, unix.MSG_TRUNC)
		if r.errno != syscall.EINTR {
			return r.errno != syscall.EAGAIN
		}
	}
}

// writeBatch sends datagrams up to the first one that fails.
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
		w.control(i, w.controls[i].set(out[i].Local, b.four))
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

// send writes the remaining messages. It returns false if the kernel's buffer is full.
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

type message struct {
	Hdr unix.Msghdr
	Len uint32
}

type messages struct {
	headers  []message
	vectors  []unix.Iovec
	names    []sockaddr
	controls []control
	pending  int // number of messages in this call
	zones    zones
}

// grow makes room for n messages, each with its vector and name.
func (m *messages) grow(n int) {
	m.pending = n
	if n <= len(m.headers) {
		return
	}
	m.headers, m.vectors, m.names = make([]message, n), make([]unix.Iovec, n), make([]sockaddr, n)
	m.controls = make([]control, n)
	for i := range m.headers {
		h := &m.headers[i].Hdr
		h.Name = &m.names[i][0]
		h.Iov = &m.vectors[i]
		h.SetIovlen(1)
	}
}

func (m *messages) point(i int, p []byte) {
	m.vectors[i].Base = unsafe.SliceData(p)
	m.vectors[i].SetLen(len(p))
}

// control sets the size of the control message of message i: the capacity for receiving one, or 0
// for none.
func (m *messages) control(i int, size uint64) {
	h := &m.headers[i].Hdr
	h.Control, h.Controllen = nil, size
	if size > 0 {
		h.Control = (*byte)(unsafe.Pointer(&m.controls[i]))
	}
}

// transfer makes one system call for the messages from first to end, at least one, and returns the
// number transferred. The socket is non-blocking, so the call takes a fraction of a millisecond.
// The call is hidden from Go's scheduler, because its monitor thread would otherwise wake up
// several times per call even on an idle server.
func (m *messages) transfer(call, fd uintptr, first, end int, flags uintptr) (int, syscall.Errno) {
	h := m.headers[first:end]
	n, _, errno := unix.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&h[0])), uintptr(len(h)), flags, 0, 0)
	return int(n), errno
}

const (
	sockaddrSize  = unix.SizeofSockaddrInet6
	sockaddrSize4 = unix.SizeofSockaddrInet4
)

// sockaddr is the kernel's struct sockaddr_in or sockaddr_in6: 2 bytes family in the machine's
// order, 2 bytes port in the network's, then 4 bytes IPv4 address, or 4 bytes flow, 16 bytes IPv6
// address, 4 bytes scope in the machine's order.
type sockaddr [sockaddrSize]byte

// set sets s to the address a and returns its size. four reports whether the socket is for IPv4
// only.
func (s *sockaddr) set(a netip.AddrPort, four bool, z *zones) (uint32, error) {
	ip := a.Addr()
	binary.BigEndian.PutUint16(s[2:], a.Port())
	if four {
		if ip = ip.Unmap(); !ip.Is4() {
			return 0, &net.AddrError{Err: "not an address of IPv4", Addr: ip.String()}
		}
		binary.NativeEndian.PutUint16(s[:], unix.AF_INET)
		*(*[4]byte)(s[4:]) = ip.As4()
		clear(s[8:sockaddrSize4])
		return sockaddrSize4, nil
	}
	if !ip.IsValid() {
		return 0, &net.AddrError{Err: "no address", Addr: a.String()}
	}
	var scope uint32
	if zone := ip.Zone(); zone != "" {
		var err error
		if scope, err = z.scope(zone); err != nil {
			return 0, err
		}
	}
	binary.NativeEndian.PutUint16(s[:], unix.AF_INET6)
	clear(s[4:8])
	*(*[16]byte)(s[8:]) = ip.As16()
	binary.NativeEndian.PutUint32(s[24:], scope)
	return sockaddrSize, nil
}

// addr returns the address, unmapped if it is IPv4. It is invalid for other families.
func (s *sockaddr) addr(z *zones) netip.AddrPort {
	port := binary.BigEndian.Uint16(s[2:])
	switch binary.NativeEndian.Uint16(s[:]) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:])), port)
	case unix.AF_INET6:
		ip := netip.AddrFrom16([16]byte(s[8:])).Unmap()
		if scope := binary.NativeEndian.Uint32(s[24:]); scope != 0 {
			ip = ip.WithZone(z.name(scope))
		}
		return netip.AddrPortFrom(ip, port)
	default:
		return netip.AddrPort{}
	}
}

// control is a control message with a local address. For IPv4 it is a struct in_pktinfo: the number
// of an interface, the source address of sent datagrams, and the destination of received ones. For
// IPv6 it is a struct in6_pktinfo: an address and the number of an interface.
type control struct {
	header unix.Cmsghdr
	data   [24]byte // unix.SizeofInet6Pktinfo, aligned
}

const controlSize = uint64(unsafe.Sizeof(control{}))

const (
	controlLen4 = uint64(unix.SizeofCmsghdr + infoSize4)
	controlLen6 = uint64(unix.SizeofCmsghdr + unix.SizeofInet6Pktinfo)
)

// set sets c to the source of a datagram and returns its size, 0 for no source. four reports
// whether the socket is for IPv4 only.
func (c *control) set(local netip.Addr, four bool) (size uint64) {
	switch {
	case !local.IsValid() || four && !local.Is4():
		return 0
	case four:
		c.header = unix.Cmsghdr{Len: controlLen4, Level: unix.IPPROTO_IP, Type: infoType4}
		c.data = [24]byte{}
		*(*[4]byte)(c.data[infoAt4:]) = local.As4()
		return uint64(unix.CmsgSpace(infoSize4))
	default:
		c.header = unix.Cmsghdr{Len: controlLen6, Level: unix.IPPROTO_IPV6, Type: unix.IPV6_PKTINFO}
		c.data = [24]byte{}
		*(*[16]byte)(c.data[:]) = local.As16()
		return controlSize
	}
}

// local returns the address to which a received datagram was sent. It is the zero value if there is
// no such control message, or if the address is a multicast or broadcast address.
func (c *control) local(size uint64) (a netip.Addr) {
	switch h := &c.header; {
	case size >= controlLen4 && h.Len == controlLen4 && h.Level == unix.IPPROTO_IP && h.Type == infoType4:
		a = netip.AddrFrom4([4]byte(c.data[infoAt4:]))
	case size >= controlLen6 && h.Len == controlLen6 && h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO:
		a = netip.AddrFrom16([16]byte(c.data[:])).Unmap()
	}
	if a.IsMulticast() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// zones caches the names of link-local interfaces, because a query of the kernel takes system calls
// and memory. It has at most one entry per interface.
type zones struct {
	names  map[uint32]string
	scopes map[string]uint32
}

// name returns the name of an interface, or its number if it has none.
func (z *zones) name(scope uint32) string {
	if name, ok := z.names[scope]; ok {
		return name
	}
	iface, err := net.InterfaceByIndex(int(scope))
	if err != nil {
		return strconv.FormatUint(uint64(scope), 10)
	}
	z.learn(iface.Name, scope)
	return iface.Name
}

// scope returns the number of an interface. zone is its name or number.
func (z *zones) scope(zone string) (uint32, error) {
	if scope, ok := z.scopes[zone]; ok {
		return scope, nil
	}
	if iface, err := net.InterfaceByName(zone); err == nil {
		z.learn(zone, uint32(iface.Index))
		return uint32(iface.Index), nil
	}
	scope, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("no interface %q: %w", zone, err)
	}
	return uint32(scope), nil
}

func (z *zones) learn(name string, scope uint32) {
	if z.names == nil {
		z.names, z.scopes = make(map[uint32]string), make(map[string]uint32)
	}
	z.names[scope], z.scopes[name] = name, scope
}
