package bots

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// lossyNetwork loses datagrams of another network, and does nothing else to them.
type lossyNetwork struct {
	inner transport.Network

	mu      sync.Mutex
	out, in simnet.Config
}

// newLossyNetwork makes one. Each socket has losses of its own. The error is that of simnet.Config.Validate.
func newLossyNetwork(inner transport.Network, out, in simnet.Config) (*lossyNetwork, error) {
	if err := errors.Join(out.Validate(), in.Validate()); err != nil {
		return nil, err
	}
	return &lossyNetwork{inner: inner, out: out, in: in}, nil
}

// ListenPacket opens a socket of the inner network.
func (n *lossyNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	out, in, err := n.links()
	if err != nil {
		return nil, err
	}
	pc, err := n.inner.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	return &lossyConn{pc: pc, out: loser{link: out}, in: loser{link: in}}, nil
}

func (n *lossyNetwork) links() (out, in *simnet.Link, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out, outErr := simnet.NewLink(n.out)
	in, inErr := simnet.NewLink(n.in)
	n.out.Seed++
	n.in.Seed++
	return out, in, errors.Join(outErr, inErr)
}

// lossyConn is a socket of a lossyNetwork. It names each method, so that none gets around the loss.
type lossyConn struct {
	pc      transport.PacketConn
	out, in loser
}

func (c *lossyConn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := c.pc.ReadFrom(p)
		if err != nil || !c.in.loses(n) {
			return n, from, err
		}
	}
}

func (c *lossyConn) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if c.out.loses(len(p)) {
		return len(p), nil
	}
	return c.pc.WriteTo(p, to)
}

func (c *lossyConn) SetReadDeadline(t time.Time) error { return c.pc.SetReadDeadline(t) }

func (c *lossyConn) LocalAddr() netip.AddrPort { return c.pc.LocalAddr() }

func (c *lossyConn) Close() error { return c.pc.Close() }

// loser is one direction. A link that takes no time needs no clock.
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
