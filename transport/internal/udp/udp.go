// Package udp is the transport's packet connection over the sockets of the operating system. On Linux a
// batch of datagrams costs one system call.
package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// socketBuffer is the size asked for the kernel's buffers, in bytes. The kernel may give less. It holds
// one tick of a full server: 1,000 players at 60 datagrams a second bring 1,000 of them in 17 ms.
const socketBuffer = 4 << 20

// Conn is a UDP socket. Its methods allocate nothing once warm. Writing is safe for concurrent use; one
// goroutine at a time reads.
type Conn struct {
	socket *net.UDPConn
	batcher
}

// Listen opens a socket on addr ("host:port"; an empty host is every address, port 0 a free one). What it
// sends is not fragmented, where the operating system can be told so.
func Listen(addr string) (*Conn, error) { return listen(addr, false) }

// listen opens a socket, which shares its address with other shards if it is one.
func listen(addr string, shard bool) (*Conn, error) {
	config := net.ListenConfig{Control: func(network, _ string, rc syscall.RawConn) error {
		var failed error
		err := rc.Control(func(fd uintptr) {
			dontFragment(fd, network == "udp6")
			if shard {
				failed = shareAddress(fd)
			}
		})
		if err != nil {
			return err
		}
		return failed
	}}
	pc, err := config.ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("transport: cannot open a UDP socket: %w", err)
	}
	socket := pc.(*net.UDPConn)
	// All are best effort: a smaller buffer loses datagrams under load, which UDP may do anyway.
	_ = socket.SetReadBuffer(socketBuffer)
	_ = socket.SetWriteBuffer(socketBuffer)
	forceBuffers(socket)
	c, err := newConn(socket)
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("transport: cannot use a UDP socket: %w", err)
	}
	return c, nil
}

func newConn(socket *net.UDPConn) (*Conn, error) {
	c := &Conn{socket: socket}
	if err := c.init(socket); err != nil {
		return nil, err
	}
	return c, nil
}

// ReadFrom waits for a datagram, copies it to p, cut off at len(p), and returns its size and its sender.
// An IPv4 sender has an IPv4 address, whatever the socket's family. It returns
// [os.ErrDeadlineExceeded] after the read deadline and [net.ErrClosed] after Close. What the network
// reports about earlier datagrams (nobody listens there, no route) is not an error of the socket and
// is skipped.
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

// WriteTo sends p as one datagram. It does not wait for the network, only for room in the kernel's buffer.
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

// unmap makes an IPv4-mapped IPv6 address, as a socket for both families reports it, the IPv4 address
// that it stands for.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
