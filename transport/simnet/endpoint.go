package simnet

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// endpoint is a transport.PacketConn of a Network.
type endpoint struct {
	network *Network
	addr    netip.AddrPort
	public  netip.AddrPort // where others see it; guarded by the network's lock
	inbox   *mailbox
	closed  atomic.Bool
}

func (e *endpoint) ReadFrom(p []byte) (int, netip.AddrPort, error) { return e.inbox.read(p) }

func (e *endpoint) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	if e.closed.Load() {
		return 0, net.ErrClosed
	}
	e.network.send(e, to, p)
	return len(p), nil
}

func (e *endpoint) SetReadDeadline(t time.Time) error {
	if e.closed.Load() {
		return net.ErrClosed
	}
	e.inbox.setDeadline(t)
	return nil
}

func (e *endpoint) LocalAddr() netip.AddrPort { return e.addr }

// Close frees the address. What this endpoint has sent is still on its way; what was on its way to it is lost.
func (e *endpoint) Close() error {
	if e.closed.Swap(true) {
		return net.ErrClosed
	}
	e.network.unbind(e)
	e.inbox.close(true)
	return nil
}
