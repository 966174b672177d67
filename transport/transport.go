// Package transport carries a game's datagrams and reliable messages over one UDP port. It knows
// nothing of what it carries.
//
// A [Listener] serves many peers, [Dial] makes a connection to one. Either end is a [Conn], with two
// channels: [Conn.Send] sends a datagram, which may be lost, come late or out of order, but never
// twice, and never after 64 newer datagrams; [Conn.SendReliable] sends a message, and messages come
// in order and without loss while the connection lives. What arrives goes to a [Handler], whose
// methods are called from one goroutine.
//
// Datagrams are encrypted and authenticated ([Suite]). A client shows a connect token, which the game's
// backend has issued with the listener's key (package token) and which begins one connection; it knows by the
// token whom it talks to. On loopback addresses, and there alone, all of this works without any
// configuration, with a key that everybody has. What a listener does for a stranger is bounded: little work
// and no memory before the sender has shown to own its address, few handshakes at a time after that.
//
// A connection does not end when the client's address changes, by its router's doing or by [Conn.Rebind].
package transport

import (
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/transport/internal/reliable"
	"github.com/uplink-rpc/uplink/transport/internal/udp"
	"github.com/uplink-rpc/uplink/transport/internal/wire"
)

const (
	// MaxPayload is the size of the largest payload of [Conn.Send] in bytes, on any path: in a UDP payload of
	// 1,200 bytes. [Conn.MaxPayload] may be more.
	MaxPayload = wire.MaxBody
	// HeaderSize is the size of the header of a datagram in bytes. While a client hears nothing from its
	// listener, its datagrams have 8 bytes more.
	HeaderSize = wire.ShortSize
	// SegmentSize is the size of the header of each segment of the reliable channel in bytes.
	SegmentSize = reliable.SegmentSize
	// IPSize is the size of the headers of IPv4 and UDP before each datagram in bytes.
	IPSize = 20 + 8
)

// PacketConn sends and receives datagrams. One goroutine at a time calls ReadFrom; the other methods
// are safe for concurrent use. One that is a [BatchConn] too is used as such.
type PacketConn interface {
	// ReadFrom waits for a datagram and copies it to p; what p has no room for is lost. It returns
	// [os.ErrDeadlineExceeded] at the read deadline and [net.ErrClosed] after Close, perhaps wrapped.
	// Any other error is taken to be final: the connection ends.
	ReadFrom(p []byte) (n int, from netip.AddrPort, err error)
	// WriteTo sends p as one datagram without waiting for the network. It does not keep p. An error
	// counts as a loss.
	WriteTo(p []byte, to netip.AddrPort) (int, error)
	// SetReadDeadline ends a waiting ReadFrom, and each later one, at t.
	SetReadDeadline(t time.Time) error
	// LocalAddr returns the address that datagrams come from.
	LocalAddr() netip.AddrPort
	// Close ends a waiting ReadFrom.
	Close() error
}

// Network opens packet connections.
type Network interface {
	// ListenPacket opens one on addr, "host:port"; port 0 is any free one.
	ListenPacket(addr string) (PacketConn, error)
}

// UDP returns the operating system's network, which is the default of [Config.Network].
func UDP() Network { return udpNetwork{} }

type udpNetwork struct{}

func (udpNetwork) ListenPacket(addr string) (PacketConn, error) {
	c, err := udp.Listen(addr)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// batchHandler is a [Handler] that a [Listener] tells when it has handled the datagrams that it has read together.
type batchHandler interface {
	Handler
	// Handled is called after each batch of datagrams, before Tick if that is due too, and when the listener has
	// stopped: what is done here is not done for each datagram.
	Handled()
}

// Handler is told what happens to the connections of one [Listener], or to one dialed [Conn]. All calls
// come from one goroutine, one after the other, with no lock held: they may call any method of a Conn
// or Listener but Close, which waits for that goroutine. While a call runs nothing is received, so it
// should be short. A Listener calls the method Handled, without arguments or results, of a Handler that has one after
// each batch of datagrams, before Tick if that is due too, and when it has stopped. What is sent meanwhile, from any goroutine, is collected and goes out in order when what
// had come by then is handled, or as soon as there is much of it.
//
// A panic in a call ends the process. If a call ends its goroutine with runtime.Goexit, as the
// FailNow of package testing does, another goroutine goes on with the next datagrams; those that
// were read together with the current one may be lost, as in the network.
type Handler interface {
	// Opened is the first call for a connection. For a dialed one it returns before Dial does.
	Opened(c *Conn)
	// Closed is the last call for a connection that was opened. The error is nil if this end closed
	// it, else it wraps one of [ErrTimeout], [ErrSessionLost], [ErrClosedByPeer], [ErrPeerShutdown], [ErrReplaced],
	// [ErrProtocol], or it is the packet connection's.
	Closed(c *Conn, err error)
	// Datagram delivers the payload of a Send, which came at that time. The payload is valid during
	// the call.
	Datagram(c *Conn, b []byte, at time.Time)
	// Message delivers a message of a SendReliable. The message is valid during the call.
	Message(c *Conn, b []byte, at time.Time)
	// Tick is called about every [Config.Tick], also when nothing arrives. A dialed connection ticks
	// while it is open, or then when [Conn.Wake] says ([OnWake]), a listener while it serves.
	Tick(now time.Time)
}
