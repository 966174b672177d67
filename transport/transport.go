// Package transport sends and receives a game's datagrams and reliable messages over one UDP port.
// It is independent of their contents.
//
// A [Listener] serves many peers; [Dial] connects to one. Either end is a [Conn] with two channels.
// [Conn.Send] sends a datagram. Datagrams can be lost or arrive out of order, but never twice, and
// never after 64 newer ones. [Conn.SendReliable] sends a message. Messages arrive in order and
// without loss while the connection is open. A [Handler] receives both; one goroutine calls its
// methods.
//
// Datagrams are encrypted and authenticated ([Suite]). A client presents a connect token, which the
// game's backend issued with the listener's key (package token) and which admits one connection.
// The token also authenticates the listener to the client. On loopback addresses, and only there,
// no configuration is required: both ends use a published key. Until a listener has validated the
// address of a sender, it does little work and keeps no state for the sender. Handshakes with
// validated addresses are limited too.
//
// A connection survives a change of the client's address, by a NAT or by [Conn.Rebind].
package transport

import (
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/transport/udp"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

const (
	// MaxPayload is the maximum size of a payload of [Conn.Send] on any path, in bytes: what fits a
	// UDP payload of 1,200 bytes. [Conn.MaxPayload] may be larger. Paths that carry less get such
	// payloads in parts.
	MaxPayload = wire.MaxBody
	// HeaderSize is the size of the header of a datagram with a payload, in bytes. It is 9 bytes
	// more for datagrams of a client that hears nothing from its listener.
	HeaderSize = wire.DataSize
	// SegmentHeaderSize is the size of the headers of a datagram with one segment of the reliable
	// channel, in bytes.
	SegmentHeaderSize = wire.ShortSize + reliable.SegmentSize
	// IPSize is the size of the IPv4 and UDP headers of a datagram, in bytes.
	IPSize = 20 + 8
	// FullOverhead is the size in bytes of what surrounds a call that is sent bit-packed, in an
	// encrypted datagram of its own: a header of 3 bytes, a tag of 16, UDP and IPv4. Wire ratios
	// compare with it whatever the suite, so that they are comparable.
	FullOverhead = 3 + 16 + IPSize
)

// PacketConn sends and receives datagrams. One goroutine at a time calls ReadFrom; the other
// methods are safe for concurrent use. If it is a [BatchConn], datagrams are read and written in
// batches.
type PacketConn interface {
	// ReadFrom waits for a datagram and copies it to p; bytes beyond len(p) are lost. It returns
	// [os.ErrDeadlineExceeded] at the read deadline and [net.ErrClosed] after Close, possibly
	// wrapped. Any other error ends the connection.
	ReadFrom(p []byte) (n int, from netip.AddrPort, err error)
	// WriteTo sends p as one datagram without waiting for the network. It does not retain p. An
	// error counts as packet loss.
	WriteTo(p []byte, to netip.AddrPort) (int, error)
	// SetReadDeadline ends the current and all later calls of ReadFrom at t.
	SetReadDeadline(t time.Time) error
	// LocalAddr returns the source address of datagrams.
	LocalAddr() netip.AddrPort
	// Close ends the current call of ReadFrom.
	Close() error
}

// BatchConn is a PacketConn that reads and writes several datagrams at once. On some operating
// systems that costs much less than separate calls.
type BatchConn interface {
	PacketConn
	// ReadBatch waits for at least one datagram, reads those available into the buffers of into,
	// and returns their number. Otherwise it is like ReadFrom, and the same goroutine calls it.
	ReadBatch(into []Datagram) (n int, err error)
	// WriteBatch sends the datagrams in order and returns the number sent. If that is less than
	// len(out), out[sent] failed with the error; the caller may continue with the datagrams after
	// it. WriteBatch does not retain the buffers. It is safe for concurrent use.
	WriteBatch(out []Datagram) (sent int, err error)
}

// Datagram is one datagram of a batch:
//
//	Buf  []byte         // the caller's memory
//	N    int            // size in bytes; larger than len(Buf) if a received datagram did not fit
//	Addr netip.AddrPort // source or destination
//	Local netip.Addr    // the other end, an address of this machine; the zero value if it has only one
//
// A listener answers from the address at which a datagram arrived, so the answer to a client comes
// from the address that it has dialed. Its method Bytes returns the first N bytes of Buf, or all if
// there are fewer.
type Datagram = udp.Datagram

// Network opens packet connections. It may also have the method
//
//	ListenShards(addr string, n int) ([]PacketConn, error)
//
// which opens n packet connections on one address, or only one if the network cannot distribute
// datagrams. While all are open, all datagrams of one sender arrive at the same one. [UDP] has it;
// it distributes datagrams on Linux, by SO_REUSEPORT.
type Network interface {
	// ListenPacket opens a packet connection on addr, "host:port"; port 0 selects a free port.
	ListenPacket(addr string) (PacketConn, error)
}

// shardNetwork is a [Network] with ListenShards.
type shardNetwork interface {
	Network
	ListenShards(addr string, n int) ([]PacketConn, error)
}

// UDP returns the operating system's network, the default of [Config.Network]. Its packet
// connections are [BatchConn]s.
func UDP() Network { return udpNetwork{} }

type udpNetwork struct{}

func (n udpNetwork) ListenPacket(addr string) (PacketConn, error) {
	pcs, err := n.ListenShards(addr, 1)
	if err != nil {
		return nil, err
	}
	return pcs[0], nil
}

func (udpNetwork) ListenShards(addr string, n int) ([]PacketConn, error) {
	if n < 1 {
		return nil, fmt.Errorf("transport: %d shards, must be at least 1", n)
	}
	conns, err := udp.ListenShards(addr, n)
	if err != nil {
		return nil, err
	}
	pcs := make([]PacketConn, len(conns))
	for i, c := range conns {
		pcs[i] = c
	}
	return pcs, nil
}

// MaxShards returns the maximum of [Config.Shards] on this machine: the number of processors, at
// least 4.
func MaxShards() int { return max(runtime.NumCPU(), 4) }

// batched returns pc if it is a BatchConn, or an adapter whose batches have one datagram.
func batched(pc PacketConn) BatchConn {
	if b, ok := pc.(BatchConn); ok {
		return b
	}
	return unbatched{pc}
}

type unbatched struct{ PacketConn }

func (u unbatched) ReadBatch(into []Datagram) (int, error) {
	var err error
	if into[0].N, into[0].Addr, err = u.ReadFrom(into[0].Buf); err != nil {
		return 0, err
	}
	return 1, nil
}

func (u unbatched) WriteBatch(out []Datagram) (int, error) {
	for i := range out {
		if _, err := u.WriteTo(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}
