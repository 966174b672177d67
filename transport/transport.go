// Package transport contains the types of sessions between clients and servers that games use: the
// network that opens packet connections, the suites that encrypt datagrams, the reasons for the end
// or the refusal of a session, streams of bytes, and the counts of connections.
package transport

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/internal/transport/seal"
	"github.com/uplink-rpc/uplink/internal/transport/udp"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
)

// MaxPayload is the maximum size of a payload on any path, in bytes: what fits a UDP payload of
// 1,200 bytes. Paths that carry less get such payloads in parts.
const MaxPayload = wire.MaxBody

// Suite is the algorithm that encrypts and authenticates datagrams.
type Suite = seal.Suite

// The suites.
const (
	// None neither encrypts nor authenticates. It is for measurements, and requires
	// Config.Insecure at both ends.
	None = seal.None
	// AES128GCM is AES-128 in Galois/counter mode, with a tag of 16 bytes. It is the default.
	AES128GCM = seal.AES128GCM
	// AES128CTRHMAC8 is AES-128 in counter mode with HMAC-SHA-256 truncated to 8 bytes. Datagrams
	// are smaller and take more computation.
	AES128CTRHMAC8 = seal.AES128CTRHMAC8
	// ChaCha20Poly1305 is ChaCha20 and Poly1305, with a tag of 16 bytes. It is for clients without
	// AES instructions.
	ChaCha20Poly1305 = seal.ChaCha20Poly1305
	// ChaCha20SipHash8 is ChaCha20 and SipHash-2-4, with a tag of 8 bytes: the compact suite of
	// clients without AES.
	ChaCha20SipHash8 = seal.ChaCha20SipHash8
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

// UDP returns the operating system's network, the default of Config.Network of clients
// and servers. Its packet connections are [BatchConn]s.
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

// TapEvent is a payload or a reliable message that a connection sends or receives.
type TapEvent struct {
	At time.Time
	// Sent reports whether this end sent it.
	Sent bool
	// Reliable reports whether it is a message.
	Reliable bool
	// Number is the packet number of a payload and Size the size of its UDP payload in bytes. They
	// are 0 for a message, which may share datagrams or take several.
	Number uint64
	Size   int
	// Body is valid during the call.
	Body []byte
}
