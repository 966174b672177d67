// Package endpoint sends and receives a game's datagrams and reliable messages over one UDP port.
// It is independent of their contents.
//
// A [Listener] serves many peers; [Dial] connects to one. Either end is a [Conn] with two channels.
// [Conn.Send] sends a datagram. Datagrams can be lost or arrive out of order, but never twice, and
// never after 64 newer ones. [Conn.SendReliable] sends a message. Messages arrive in order and
// without loss while the connection is open. A [Handler] receives both; one goroutine calls its
// methods.
//
// Datagrams are encrypted and authenticated ([transport.Suite]). A client presents a connect token,
// which the game's backend issued with the listener's key (package token) and which admits one
// connection. The token also authenticates the listener to the client. On loopback addresses, and
// only there, no configuration is required: both ends use a published key. Until a listener has
// validated the address of a sender, it does little work and keeps no state for the sender.
// Handshakes with validated addresses are limited too.
//
// A connection survives a change of the client's address, by a NAT or by [Conn.Rebind].
package endpoint

import (
	"runtime"

	"github.com/uplink-rpc/uplink/internal/transport/reliable"
	"github.com/uplink-rpc/uplink/internal/transport/wire"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// HeaderSize is the size of the header of a datagram with a payload, in bytes. It is 9 bytes
	// more for datagrams of a client that receives nothing from its listener.
	HeaderSize = wire.DataSize
	// SegmentHeaderSize is the size of the headers of a datagram with one segment of the reliable
	// channel, in bytes.
	SegmentHeaderSize = wire.ShortSize + reliable.SegmentSize
	// IPSize is the size of the IPv4 and UDP headers of a datagram, in bytes.
	IPSize = 20 + 8
	// FullOverhead is the overhead in bytes of a call that is bit-packed and sent in an encrypted
	// datagram of its own: a header of 3 bytes, a tag of 16 bytes, and the headers of UDP and IPv4.
	// Wire ratios compare with it whatever the suite, so that they are comparable.
	FullOverhead = 3 + 16 + IPSize
)

// shardNetwork is a [transport.Network] with ListenShards.
type shardNetwork interface {
	transport.Network
	ListenShards(addr string, n int) ([]transport.PacketConn, error)
}

// MaxShards returns the maximum of [Config.Shards] on this machine: the number of processors, at
// least 4.
func MaxShards() int { return max(runtime.NumCPU(), 4) }

// batched returns pc if it is a BatchConn, or an adapter whose batches have one datagram.
func batched(pc transport.PacketConn) transport.BatchConn {
	if b, ok := pc.(transport.BatchConn); ok {
		return b
	}
	return unbatched{pc}
}

type unbatched struct{ transport.PacketConn }

func (u unbatched) ReadBatch(into []transport.Datagram) (int, error) {
	var err error
	if into[0].N, into[0].Addr, err = u.ReadFrom(into[0].Buf); err != nil {
		return 0, err
	}
	return 1, nil
}

func (u unbatched) WriteBatch(out []transport.Datagram) (int, error) {
	for i := range out {
		if _, err := u.WriteTo(out[i].Bytes(), out[i].Addr); err != nil {
			return i, err
		}
	}
	return len(out), nil
}
