package simnet

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// wrapped is a [transport.PacketConn] behind simulated links.
type wrapped struct {
	pc            transport.PacketConn
	clock         clock
	outbox, inbox *mailbox
	sending       sync.WaitGroup
	receiving     sync.WaitGroup
	close         sync.Once
	err           error // error of closing pc

	mu       sync.Mutex
	out, in  *Link
	closed   bool
	arrivals []time.Duration
}

// wrap puts simulated links in front of pc, one for each direction, and owns pc from then on. The
// error is that of [Config.Validate].
func wrap(pc transport.PacketConn, out, in Config) (*wrapped, error) {
	outLink, outErr := NewLink(out)
	inLink, inErr := NewLink(in)
	if err := errors.Join(outErr, inErr); err != nil {
		return nil, err
	}
	c := newClock()
	w := &wrapped{
		pc: pc, clock: c, out: outLink, in: inLink,
		outbox: newMailbox(c), inbox: newMailbox(c),
	}
	w.sending.Go(w.send)
	w.receiving.Go(w.receive)
	return w, nil
}

// Set changes the links while they run. The error is that of [Config.Validate]; nothing is changed
// then.
func (w *wrapped) Set(out, in Config) error {
	if err := errors.Join(out.Validate(), in.Validate()); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.out.Set(out), w.in.Set(in))
}

// ReadFrom returns the next datagram that has passed the link.
func (w *wrapped) ReadFrom(p []byte) (int, netip.AddrPort, error) { return w.inbox.read(p) }

// WriteTo sends p over the link.
func (w *wrapped) WriteTo(p []byte, to netip.AddrPort) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, net.ErrClosed
	}
	w.carry(w.out, w.outbox, to, p)
	return len(p), nil
}

// SetReadDeadline ends ReadFrom at t.
func (w *wrapped) SetReadDeadline(t time.Time) error {
	w.inbox.setDeadline(t)
	return nil
}

// LocalAddr returns the address of the connection behind the links.
func (w *wrapped) LocalAddr() netip.AddrPort { return w.pc.LocalAddr() }

// Close waits until the written packets have passed the link, and closes the underlying connection.
func (w *wrapped) Close() error {
	w.close.Do(func() {
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		w.inbox.close(true)
		w.outbox.close(false)
		w.sending.Wait()
		w.err = w.pc.Close()
		w.receiving.Wait()
	})
	return w.err
}

// carry sends a packet over a link into the mailbox at its end. It is called with the lock held.
func (w *wrapped) carry(link *Link, to *mailbox, addr netip.AddrPort, data []byte) {
	w.arrivals = link.Send(w.arrivals[:0], w.clock.now(), len(data)+overhead)
	for _, at := range w.arrivals {
		to.put(at, addr, data)
	}
}

// send is the goroutine that writes packets that have passed the link.
func (w *wrapped) send() {
	for {
		p, err := w.outbox.take()
		if err != nil {
			return
		}
		// An error counts as packet loss.
		_, _ = w.pc.WriteTo(p.data, p.addr)
		buffers.put(p.data)
	}
}

// receive is the goroutine that reads packets into the link.
func (w *wrapped) receive() {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := w.pc.ReadFrom(buf)
		if err != nil {
			w.inbox.close(false)
			return
		}
		w.mu.Lock()
		w.carry(w.in, w.inbox, from, buf[:n])
		w.mu.Unlock()
	}
}

func (w *wrapped) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// WrappedNetwork is a [transport.Network] behind simulated links. It is safe for concurrent use.
type WrappedNetwork struct {
	inner transport.Network

	mu      sync.Mutex
	out, in Config
	open    []*wrapped
	count   uint64 // number of connections ever opened, which makes their seeds differ
}

// WrapNetwork returns a network whose packet connections are those of inner behind simulated links:
// each has its own links with these configurations, and increasing seeds. A nil inner means UDP.
// The error is that of [Config.Validate].
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
	w, err := wrap(pc, out, in)
	if err != nil {
		return nil, errors.Join(err, pc.Close())
	}
	n.count++
	n.open = append(slices.DeleteFunc(n.open, (*wrapped).isClosed), w)
	return w, nil
}

// Set changes the links of all packet connections while they run, and of later ones. The error is
// that of [Config.Validate]; nothing is changed then.
func (n *WrappedNetwork) Set(out, in Config) error {
	if err := errors.Join(out.Validate(), in.Validate()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out, n.in = out, in
	n.open = slices.DeleteFunc(n.open, (*wrapped).isClosed)
	for _, w := range n.open {
		if err := w.Set(out, in); err != nil {
			return err
		}
	}
	return nil
}
