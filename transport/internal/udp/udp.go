// Package udp is the transport's packet connection over the sockets of the operating system.
package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// socketBuffer is the size asked for the kernel's buffers, in bytes. The kernel may give less. It holds
// one tick of a full server: 1,000 players at 60 datagrams a second bring 1,000 of them in 17 ms.
const socketBuffer = 4 << 20

// Conn is a UDP socket. Its methods allocate nothing. Writing is safe for concurrent use; one goroutine
// at a time reads.
type Conn struct {
	socket *net.UDPConn
}

// Listen opens a socket on addr ("host:port"; an empty host is every address, port 0 a free one).
func Listen(addr string) (*Conn, error) {
	pc, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("transport: cannot open a UDP socket: %w", err)
	}
	socket := pc.(*net.UDPConn)
	// Both are best effort: a smaller buffer loses datagrams under load, which UDP may do anyway.
	_ = socket.SetReadBuffer(socketBuffer)
	_ = socket.SetWriteBuffer(socketBuffer)
	return &Conn{socket: socket}, nil
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
