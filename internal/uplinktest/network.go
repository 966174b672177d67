package uplinktest

import (
	"net/netip"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/transport"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// Addr is the address of servers.
const Addr = "127.0.0.1:7777"

// Network is a network in memory whose sockets tests can watch and close.
type Network struct {
	*simnet.Network

	mu    sync.Mutex
	open  map[netip.AddrPort][]transport.PacketConn
	watch func(from, to netip.AddrPort, b []byte)
	mute  map[netip.AddrPort]bool
}

// NewNetwork returns a network whose links from clients are configured by up, and those to clients
// by down. It logs the seeds. Call it inside the synctest bubble.
func NewNetwork(t testing.TB, up, down simnet.Config) *Network {
	t.Helper()
	t.Logf("links up %+v, down %+v", up, down)
	n, err := simnet.NewNetwork(up, down)
	Must(t, err)
	return &Network{Network: n, open: map[netip.AddrPort][]transport.PacketConn{}, mute: map[netip.AddrPort]bool{}}
}

// ListenPacket implements transport.Network.
func (n *Network) ListenPacket(addr string) (transport.PacketConn, error) {
	pcs, err := n.ListenShards(addr, 1)
	if err != nil {
		return nil, err
	}
	return pcs[0], nil
}

// ListenShards implements endpoint.ShardNetwork.
func (n *Network) ListenShards(addr string, count int) ([]transport.PacketConn, error) {
	pcs, err := n.Network.ListenShards(addr, count)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[pcs[0].LocalAddr()] = pcs
	sockets := make([]transport.PacketConn, len(pcs))
	for i, pc := range pcs {
		sockets[i] = &socket{PacketConn: pc, network: n}
	}
	return sockets, nil
}

// Crash closes the sockets at addr without informing the peers, as when a process dies.
func (n *Network) Crash(t testing.TB, addr string) {
	t.Helper()
	n.mu.Lock()
	pcs := n.open[netip.MustParseAddrPort(addr)]
	n.mu.Unlock()
	for _, pc := range pcs {
		Must(t, pc.Close())
	}
}

// Socket returns the first socket that is bound to addr, or nil. Watch does not observe the
// datagrams that a test sends from it.
func (n *Network) Socket(addr netip.AddrPort) transport.PacketConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if pcs := n.open[addr]; len(pcs) > 0 {
		return pcs[0]
	}
	return nil
}

// Watch calls f for each datagram that is sent from now on.
func (n *Network) Watch(f func(from, to netip.AddrPort, b []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watch = f
}

// Mute drops all datagrams that are sent from addr while mute is true.
func (n *Network) Mute(addr string, mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute[netip.MustParseAddrPort(addr)] = mute
}

type socket struct {
	transport.PacketConn
	network *Network
}

func (s *socket) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	s.network.mu.Lock()
	if s.network.watch != nil {
		s.network.watch(s.LocalAddr(), to, b)
	}
	mute := s.network.mute[s.LocalAddr()]
	s.network.mu.Unlock()
	if mute {
		return len(b), nil
	}
	return s.PacketConn.WriteTo(b, to)
}

// Kinds of datagrams that tests use; docs/spec/datagrams.md defines all kinds.
const (
	DataKind     = 0
	ReliableKind = 1
)

// Kind returns the kind of an encrypted datagram, or -1 for one of the handshake.
func Kind(b []byte) int {
	switch {
	case len(b) == 0 || b[0]>>6 == 2:
		return -1
	case b[0]>>6 == 3:
		return DataKind
	}
	return int(b[0] >> 3 & 7)
}

// HeaderSize returns the size of the header of an encrypted datagram in bytes.
func HeaderSize(b []byte) int { return [...]int{0: 3, 1: 11, 3: 2}[b[0]>>6] }
