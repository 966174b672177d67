package relay

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/uplink-rpc/uplink/transport"
)

// maxClients is the number of clients for each of two generations of which a server remembers the
// proxy. For any other client it uses the proxy that it heard last.
const maxClients = 1 << 15

// Network returns the network of a server behind proxies: its packet connections accept the
// envelopes of proxies, and nothing else, and have the addresses of clients. Inner opens the
// sockets; nil selects UDP. Several proxies may share the key.
func Network(inner transport.Network, key [32]byte) transport.Network {
	if inner == nil {
		inner = transport.UDP()
	}
	return network{inner, key}
}

type network struct {
	inner transport.Network
	key   [32]byte
}

// ListenPacket implements transport.Network.
func (n network) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.inner.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	c := &conn{PacketConn: pc, link: NewLink(n.key), proxies: map[netip.AddrPort]netip.AddrPort{}}
	if inner, ok := pc.(transport.BatchConn); ok {
		return &batchConn{conn: c, inner: inner, in: newBatch(), out: newBatch()}, nil
	}
	return c, nil
}

// conn is a packet connection with the addresses of clients.
type conn struct {
	transport.PacketConn
	link *Link
	in   [MaxDatagram + MaxOverhead]byte // of ReadFrom

	mu   sync.Mutex // guards the following
	out  [MaxDatagram + MaxOverhead]byte
	last netip.AddrPort // the proxy that was heard last
	// proxies contains the proxy of each client. When it is full it becomes older, whose entries
	// are discarded the next time unless they were used.
	proxies, older map[netip.AddrPort]netip.AddrPort
}

// ReadFrom implements transport.PacketConn. It ignores anything but authentic envelopes.
func (c *conn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	for {
		n, proxy, err := c.PacketConn.ReadFrom(c.in[:])
		if err != nil {
			return 0, netip.AddrPort{}, err
		}
		client, datagram, ok := c.link.Open(ToServer, c.in[:min(n, len(c.in))])
		if !ok {
			continue
		}
		c.learn(client, proxy)
		return copy(p, datagram), client, nil
	}
}

func (c *conn) learn(client, proxy netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = proxy
	if c.proxies[client] == proxy {
		return
	}
	if len(c.proxies) >= maxClients {
		c.proxies, c.older = make(map[netip.AddrPort]netip.AddrPort), c.proxies
	}
	c.proxies[client] = proxy
}

// WriteTo implements transport.PacketConn.
func (c *conn) WriteTo(p []byte, client netip.AddrPort) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	envelope, proxy, err := c.wrap(c.out[:0], p, client)
	if err == nil {
		_, err = c.PacketConn.WriteTo(envelope, proxy)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// wrap appends the envelope of a datagram, and returns the client's proxy. The lock is held.
func (c *conn) wrap(dst, p []byte, client netip.AddrPort) ([]byte, netip.AddrPort, error) {
	proxy, ok := c.proxies[client]
	if !ok {
		if proxy, ok = c.older[client]; !ok {
			proxy = c.last
		}
	}
	if !proxy.IsValid() || len(p) > MaxDatagram {
		return dst, proxy, fmt.Errorf("relay: no proxy for %v, or a datagram of %d bytes", client, len(p))
	}
	return c.link.Append(dst, ToClient, client, p), proxy, nil
}

// batchSize is the maximum number of datagrams of a system call.
const batchSize = 64

func newBatch() []transport.Datagram {
	batch := make([]transport.Datagram, batchSize)
	for i := range batch {
		batch[i].Buf = make([]byte, MaxDatagram+MaxOverhead)
	}
	return batch
}

// batchConn is a conn whose inner packet connection reads and writes batches.
type batchConn struct {
	*conn
	inner   transport.BatchConn
	in, out []transport.Datagram // out is guarded by the lock
}

// ReadBatch implements transport.BatchConn.
func (c *batchConn) ReadBatch(into []transport.Datagram) (n int, err error) {
	for n == 0 {
		read, err := c.inner.ReadBatch(c.in[:min(len(into), len(c.in))])
		if err != nil {
			return 0, err
		}
		for i := range c.in[:read] {
			client, datagram, ok := c.link.Open(ToServer, c.in[i].Bytes())
			if !ok {
				continue
			}
			c.learn(client, c.in[i].Addr)
			copy(into[n].Buf, datagram)
			into[n].N, into[n].Addr = len(datagram), client
			n++
		}
	}
	return n, nil
}

// WriteBatch implements transport.BatchConn.
func (c *batchConn) WriteBatch(out []transport.Datagram) (sent int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sent < len(out) && err == nil {
		part, n := out[sent:min(sent+batchSize, len(out))], 0
		for ; n < len(part) && err == nil; n++ {
			var envelope []byte
			envelope, c.out[n].Addr, err = c.wrap(c.out[n].Buf[:0], part[n].Bytes(), part[n].Addr)
			c.out[n].N = len(envelope)
		}
		if err != nil {
			n-- // the last one has no envelope
		}
		done, failed := c.inner.WriteBatch(c.out[:n])
		sent += done
		if failed != nil {
			return sent, failed
		}
	}
	return sent, err
}
