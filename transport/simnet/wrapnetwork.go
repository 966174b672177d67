package simnet

import (
	"errors"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/transport"
)

// WrappedNetwork is a [transport.Network] behind simulated links. It is safe for concurrent use.
type WrappedNetwork struct {
	inner transport.Network

	mu      sync.Mutex
	out, in Config
	open    []*Wrapped
	count   uint64 // of connections ever opened; makes their seeds differ
}

// WrapNetwork returns a network whose packet connections are those of inner behind simulated links: each
// gets links of its own with these configurations, and seeds counted up. A nil inner means UDP. The error is that of [Config.Validate].
func WrapNetwork(inner transport.Network, out, in Config) (*WrappedNetwork, error) {
	if err := errors.Join(out.Validate(), in.Validate()); err != nil {
		return nil, err
	}
	if inner == nil {
		inner = transport.UDP()
	}
	return &WrappedNetwork{inner: inner, out: out, in: in}, nil
}

// ListenPacket opens a packet connection of the inner network and wraps it.
func (n *WrappedNetwork) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.inner.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out, in := n.out, n.in
	out.Seed += n.count
	in.Seed += n.count
	w, err := Wrap(pc, out, in)
	if err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	n.count++
	n.open = append(slices.DeleteFunc(n.open, (*Wrapped).isClosed), w)
	return w, nil
}

// Set changes the links of all packet connections while they run, and of those to come. The error is
// that of [Config.Validate]; nothing is changed then.
func (n *WrappedNetwork) Set(out, in Config) error {
	if err := errors.Join(out.Validate(), in.Validate()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out, n.in = out, in
	n.open = slices.DeleteFunc(n.open, (*Wrapped).isClosed)
	for _, w := range n.open {
		if err := w.Set(out, in); err != nil {
			return err
		}
	}
	return nil
}
