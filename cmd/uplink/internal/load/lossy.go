package load

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// lossyNetwork adds packet loss to another network. Unlike simnet.WrapNetwork it needs no
// goroutines and timers, which would be too slow for thousands of bots.
type lossyNetwork struct {
	inner transport.Network

	mu      sync.Mutex
	out, in simnet.Config
}

// newLossyNetwork returns a network in which each socket has independent losses.
func newLossyNetwork(inner transport.Network, out, in simnet.Config) (*lossyNetwork, error) {
	return &lossyNetwork{inner: inner, out: out, in: in}, errors.Join(out.Validate(), in.Validate())
}

// ListenPacket opens a socket of the inner network.
func (n *lossyNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out, outErr := simnet.NewLink(n.out)
	in, inErr := simnet.NewLink(n.in)
	pc, err := n.inner.ListenPacket(addr)
	if err := errors.Join(err, outErr, inErr); err != nil {
		return nil, err
	}
	n.out.Seed++
	n.in.Seed++
	return &lossyConn{PacketConn: pc, out: loser{link: out}, in: loser{link: in}}, nil
}

// lossyConn is a socket of a lossyNetwork.
type lossyConn struct {
	transport.PacketConn
	out, in loser
}

func (c *lossyConn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(p)
		if err != nil || !c.in.loses(n) {
			return n, from, err
		}
	}
}

func (c *lossyConn) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if c.out.loses(len(p)) {
		return len(p), nil
	}
	return c.PacketConn.WriteTo(p, to)
}

// loser simulates the losses of one direction. It needs no clock, because its link has no delay.
type loser struct {
	mu       sync.Mutex
	link     *simnet.Link
	arrivals []time.Duration
}

func (l *loser) loses(size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals = l.link.Send(l.arrivals[:0], 0, size)
	return len(l.arrivals) == 0
}
