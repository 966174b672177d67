package simnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

const firstPort = 49152 // first port that replaces port 0

// Network is a network in memory. Each ordered pair of addresses has a link of its own. Its
// [transport.PacketConn]s block on channels and timers only, so under testing/synctest it uses the
// virtual time of the bubble. Call NewNetwork inside the bubble. It is safe for concurrent use.
type Network struct {
	clock clock

	mu       sync.Mutex
	up, down Config
	// shared contains the queue of all links with the configuration up, and that of all with down.
	// It is nil if each link has its own queue.
	shared   *[2]bottleneck
	flows    map[[2]netip.AddrPort]flow
	bound    map[netip.AddrPort][]*endpoint // by public address; several are shards
	port     uint16
	arrivals []time.Duration
}

// flow is one direction between two addresses.
type flow struct {
	link *Link
	up   bool
}

// NewNetwork returns a network. Between two addresses there are two links. The link of the first
// packet has the configuration up, since clients send first; the link in the other direction has
// down. The seeds of the links are derived from the configuration's and the addresses. The error is
// that of [Config.Validate].
func NewNetwork(up, down Config) (*Network, error) {
	if err := errors.Join(up.Validate(), down.Validate()); err != nil {
		return nil, err
	}
	return &Network{
		clock: newClock(),
		up:    up,
		down:  down,
		flows: make(map[[2]netip.AddrPort]flow),
		bound: make(map[netip.AddrPort][]*endpoint),
		port:  firstPort,
	}, nil
}

// Set changes all links while they run. The error is that of [Config.Validate]; nothing is changed
// then.
func (n *Network) Set(up, down Config) error {
	if err := errors.Join(up.Validate(), down.Validate()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up, n.down = up, down
	for _, f := range n.flows {
		if err := f.link.Set(n.config(f.up)); err != nil {
			return err
		}
	}
	return nil
}

// ShareBottleneck makes all links of the configuration up share the queue of their Rate, and all
// links of down another one, like connections over one access line. Call it before the first
// packet.
func (n *Network) ShareBottleneck() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shared = new([2]bottleneck)
}

// ListenPacket binds addr, "ip:port". An empty or unspecified ip selects 127.0.0.1, and port 0 a
// free port.
func (n *Network) ListenPacket(addr string) (transport.PacketConn, error) {
	pcs, err := n.ListenShards(addr, 1)
	if err != nil {
		return nil, err
	}
	return pcs[0], nil
}

// ListenShards binds count packet connections to addr, as ListenPacket does. While none is closed,
// the sender's address determines which of them receives a packet.
func (n *Network) ListenShards(addr string, count int) ([]transport.PacketConn, error) {
	a, err := parse(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.Port() == 0 {
		a = n.freePort(a.Addr())
	}
	if n.bound[a] != nil {
		return nil, fmt.Errorf("simnet: %v is in use", a)
	}
	pcs := make([]transport.PacketConn, count)
	for i := range pcs {
		e := &endpoint{network: n, addr: a, public: a, inbox: newMailbox(n.clock)}
		n.bound[a] = append(n.bound[a], e)
		pcs[i] = e
	}
	return pcs, nil
}

// Rebind changes the public address of the packet connection that is bound to addr to a new port,
// like a NAT that has created another mapping. The packet connection itself does not notice;
// packets to the previous address are lost. It returns the new address, or an error if nothing is
// bound to addr.
func (n *Network) Rebind(addr netip.AddrPort) (netip.AddrPort, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for old, shards := range n.bound {
		if shards[0].addr != addr {
			continue
		}
		public := n.freePort(addr.Addr())
		for _, e := range shards {
			e.public = public
		}
		delete(n.bound, old)
		n.bound[public] = shards
		return public, nil
	}
	return netip.AddrPort{}, fmt.Errorf("simnet: nothing is bound to %v", addr)
}

// freePort returns an address with an unused port. It is called with the lock held.
func (n *Network) freePort(ip netip.Addr) netip.AddrPort {
	for {
		a := netip.AddrPortFrom(ip, n.port)
		if n.port++; n.port == 0 {
			n.port = firstPort
		}
		if n.bound[a] == nil {
			return a
		}
	}
}

// parse parses an address to listen on.
func parse(addr string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("simnet: bad address: %w", err)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	a, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("simnet: bad address: %w", err)
	}
	ip := a.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(ip, a.Port()), nil
}

// send sends a packet over the link from e to an address.
func (n *Network) send(e *endpoint, to netip.AddrPort, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	from := e.public
	n.arrivals = n.link(from, to).Send(n.arrivals[:0], n.clock.now(), len(data)+overhead)
	shards := n.bound[to]
	if len(shards) == 0 {
		return
	}
	inbox := shards[mix(0, from)%uint64(len(shards))].inbox
	for _, at := range n.arrivals {
		inbox.put(at, from, data)
	}
}

// link returns the link of a pair of addresses. It is called with the lock held.
func (n *Network) link(from, to netip.AddrPort) *Link {
	pair := [2]netip.AddrPort{from, to}
	if f, ok := n.flows[pair]; ok {
		return f.link
	}
	_, answer := n.flows[[2]netip.AddrPort{to, from}]
	cfg := n.config(!answer)
	cfg.Seed = mix(mix(cfg.Seed, from), to)
	l, err := NewLink(cfg)
	if err != nil {
		panic(err) // NewNetwork and Set have validated it
	}
	if n.shared != nil {
		l.bottleneck = &n.shared[0]
		if answer {
			l.bottleneck = &n.shared[1]
		}
	}
	n.flows[pair] = flow{link: l, up: !answer}
	return l
}

func (n *Network) config(up bool) Config {
	if up {
		return n.up
	}
	return n.down
}

// mix derives a seed from a seed and an address, by FNV-1a.
func mix(seed uint64, a netip.AddrPort) uint64 {
	ip := a.Addr().As16()
	h := seed ^ 14695981039346656037
	for _, b := range ip {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ uint64(byte(a.Port()))) * 1099511628211
	return (h ^ uint64(a.Port()>>8)) * 1099511628211
}

// unbind frees an endpoint's address if it is the last endpoint there.
func (n *Network) unbind(e *endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rest := slices.DeleteFunc(n.bound[e.public], func(b *endpoint) bool { return b == e })
	if len(rest) > 0 {
		n.bound[e.public] = rest
	} else {
		delete(n.bound, e.public)
	}
}

// endpoint is a transport.PacketConn of a Network.
type endpoint struct {
	network *Network
	addr    netip.AddrPort
	public  netip.AddrPort // public address; guarded by the network's lock
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

// Close frees the address. Packets in transit from this endpoint still arrive; those to it are
// lost.
func (e *endpoint) Close() error {
	if e.closed.Swap(true) {
		return net.ErrClosed
	}
	e.network.unbind(e)
	e.inbox.close(true)
	return nil
}
