// Package udp implements the transport's packet connections by the sockets of the operating system.
// On Linux, a batch of datagrams takes one system call.
package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// socketBuffer is the requested size of the kernel's buffers, in bytes; the kernel may allocate
// less. It holds one tick of a full server: 1,000 players at 60 datagrams a second send 1,000 of
// them in 17 ms.
const socketBuffer = 4 << 20

// Conn is a UDP socket. After the first calls its methods do not allocate. Writing is safe for
// concurrent use; one goroutine at a time reads.
type Conn struct {
	socket *net.UDPConn
	batcher
}

// ErrRefused means that the network reported that no program receives at the address to which a
// datagram was sent; see [Conn.ReportRefused].
var ErrRefused = errors.New("refused")

// ListenShards opens n sockets, at least 1, on the same address ("host:port"; an empty host selects
// every address, port 0 a free port). Their datagrams are not fragmented, if the operating system
// supports that. The kernel delivers all datagrams of one sender to the same socket while none of
// them is closed. If the operating system does not support that, ListenShards opens one socket. The
// host 0.0.0.0 selects every IPv4 address, and :: every address of both families.
//
// The first socket is bound without sharing, which fails if any other socket has the port, and
// shares its address only afterwards. So two servers never share a port.
func ListenShards(addr string, n int) ([]*Conn, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d shards, must be at least 1", n)
	}
	if !canShareAddress {
		n = 1
	}
	var shards []*Conn
	for i := range n {
		c, err := listen(addr, i > 0)
		if err == nil && i == 0 && n > 1 {
			err = c.share()
		}
		if err != nil {
			for _, s := range shards {
				err = errors.Join(err, s.Close())
			}
			return nil, err
		}
		if len(shards) == 0 {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			addr = net.JoinHostPort(host, strconv.Itoa(int(c.LocalAddr().Port())))
		}
		shards = append(shards, c)
	}
	return shards, nil
}

// listen opens a socket. A shard is bound to an address that an earlier socket already has.
func listen(addr string, shard bool) (*Conn, error) {
	family := "udp"
	if host, _, err := net.SplitHostPort(addr); err == nil && host == netip.IPv4Unspecified().String() {
		family = "udp4" // "udp" would open every address of both families
	}
	config := net.ListenConfig{Control: func(network, address string, rc syscall.RawConn) error {
		var failed error
		err := rc.Control(func(fd uintptr) {
			dontFragment(fd, network == "udp6")
			if unspecified(address) {
				reportLocal(fd, network == "udp6")
			}
			if shard {
				failed = shareAddress(fd)
			}
		})
		return errors.Join(err, failed)
	}}
	pc, err := config.ListenPacket(context.Background(), family, addr)
	if err != nil {
		return nil, fmt.Errorf("cannot open a UDP socket: %w", err)
	}
	socket := pc.(*net.UDPConn)
	// Errors are ignored: a smaller buffer only loses more datagrams under load.
	_ = socket.SetReadBuffer(socketBuffer)
	_ = socket.SetWriteBuffer(socketBuffer)
	forceBuffers(socket)
	c, err := newConn(socket)
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("cannot use a UDP socket: %w", err)
	}
	return c, nil
}

// unspecified reports whether a socket that is bound to the address receives datagrams to any
// address of the machine.
func unspecified(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, _ := netip.ParseAddr(host)
	return err == nil && (host == "" || ip.IsUnspecified())
}

// share lets shards be bound to the address of the socket.
func (c *Conn) share() error {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = shareAddress(fd) })
	return errors.Join(err, failed)
}

func newConn(socket *net.UDPConn) (*Conn, error) {
	c := &Conn{socket: socket}
	return c, c.init(socket)
}

// ReadFrom waits for a datagram, copies it to p, truncated to len(p), and returns its size and its
// sender. An IPv4 sender has an IPv4 address, whatever the socket's family. It returns
// [os.ErrDeadlineExceeded] after the read deadline and [net.ErrClosed] after Close. Errors that the
// network reports about earlier datagrams (port closed, no route) are skipped.
func (c *Conn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := c.socket.ReadFromUDPAddrPort(p)
		if err == nil {
			return n, unmap(from), nil
		}
		if !transient(err) {
			return 0, netip.AddrPort{}, err
		}
	}
}

// ReportRefused sets whether ReadBatch returns errors that wrap [ErrRefused] and the system's
// error. It is supported on Linux and Windows. Anybody who knows both addresses can forge such
// reports.
func (c *Conn) ReportRefused(on bool) {
	c.refused.Store(on)
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { reportRefused(fd, on) })
}

// WriteTo sends p as one datagram. It waits only for room in the kernel's buffer.
func (c *Conn) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	return c.socket.WriteToUDPAddrPort(p, to)
}

// SetReadDeadline ends a waiting and all later reads at t. It is safe for concurrent use.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// LocalAddr returns the address that the socket is bound to.
func (c *Conn) LocalAddr() netip.AddrPort {
	return unmap(c.socket.LocalAddr().(*net.UDPAddr).AddrPort())
}

// Close closes the socket and ends a waiting read.
func (c *Conn) Close() error { return c.socket.Close() }

// unmap returns the IPv4 address for an IPv4-mapped IPv6 address, which a socket for both families
// reports.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Datagram is one datagram of a batch.
type Datagram struct {
	// Buf is the caller's memory.
	Buf []byte
	// N is the size in bytes. It is larger than len(Buf) if a received datagram did not fit and was
	// truncated.
	N int
	// Addr is the source or destination.
	Addr netip.AddrPort
	// Local is the address of this machine to which a received datagram was sent, or from which one
	// is sent. It is the zero value if the socket is bound to one address, or if the operating
	// system does not report it ([ReportsLocal]): the system then selects the source.
	Local netip.Addr
}

// Bytes returns the first N bytes of Buf, or all if there are fewer.
func (d *Datagram) Bytes() []byte { return d.Buf[:min(d.N, len(d.Buf))] }

// maxBatch is the maximum number of datagrams that one system call reads or writes.
const maxBatch = 256

// ReadBatch waits for at least one datagram, reads those available, at most len(into), and sets N
// and Addr of each of the n that it returns. Otherwise it is like ReadFrom. It retains the memory
// of into until the next call.
func (c *Conn) ReadBatch(into []Datagram) (n int, err error) {
	if len(into) == 0 {
		return 0, nil
	}
	for {
		n, err = c.readBatch(into[:min(len(into), maxBatch)])
		switch {
		case err == nil || !transient(err):
			return n, err
		case c.refused.Load() && isRefused(err):
			return 0, fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
}

// WriteBatch sends the datagrams in order and returns the number sent. If sent is less than
// len(out), the error is that of datagram out[sent]; the caller may continue after it. WriteBatch
// waits only for room in the kernel's buffer.
func (c *Conn) WriteBatch(out []Datagram) (sent int, err error) {
	for sent < len(out) {
		n, err := c.writeBatch(out[sent:min(len(out), sent+maxBatch)])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// transient reports whether a read failed because of an earlier datagram or for lack of memory, so
// that the next read may succeed.
func transient(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && transientErrno(errno)
}

// isRefused reports whether a read failed because no program received an earlier datagram.
func isRefused(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno == refusedErrno
}
