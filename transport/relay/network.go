package relay

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

const (
	// maxClients is the maximum number of clients in each of two generations whose proxy a server
	// remembers. For any other client it uses the proxy from which it last received.
	maxClients = 1 << 15
	// warnInterval is the minimum time between two log records of datagrams that are no envelopes.
	warnInterval = time.Minute
)

// Network returns the network of a server behind proxies: its packet connections accept the
// envelopes of proxies, and nothing else, and have the addresses of clients. Any other datagram is
// read as an empty one, which the server counts as malformed. Inner opens the sockets; nil selects
// UDP. Several proxies may share the key. Log receives a record, at most once a minute, of
// datagrams that are no envelopes; nil disables that.
func Network(inner transport.Network, key [32]byte, log *slog.Logger) transport.Network {
	if inner == nil {
		inner = transport.UDP()
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return network{inner, key, log}
}

type network struct {
	inner transport.Network
	key   [32]byte
	log   *slog.Logger
}

// ListenPacket implements transport.Network.
func (n network) ListenPacket(addr string) (transport.PacketConn, error) {
	pc, err := n.inner.ListenPacket(addr)
	if err != nil {
		return nil, err
	}
	c := &conn{PacketConn: pc, link: NewLink(n.key), log: n.log, clients: map[netip.AddrPort]route{}}
	if inner, ok := pc.(transport.BatchConn); ok {
		return &batchConn{conn: c, inner: inner, in: newBatch(), out: newBatch()}, nil
	}
	return c, nil
}

// conn is a packet connection with the addresses of clients.
type conn struct {
	transport.PacketConn
	link *Link
	log  *slog.Logger
	// The following fields are used by ReadFrom and ReadBatch only.
	in       [MaxDatagram + MaxOverhead]byte
	rejected int       // rejected datagrams since the last log record
	warned   time.Time // time of the last log record

	mu   sync.Mutex // guards the following
	out  [MaxDatagram + MaxOverhead]byte
	last route // route of the newest envelope
	// Routes by client. When clients is full, it becomes older, and the entries of the previous
	// older that were not used since are discarded.
	clients, older map[netip.AddrPort]route
}

// route is the proxy and the mark of the last envelope of a client, and the address of this machine
// at which it arrived: the proxy accepts only envelopes from there.
type route struct {
	proxy netip.AddrPort
	mark  uint64
	local netip.Addr
}

// ReadFrom implements transport.PacketConn.
func (c *conn) ReadFrom(p []byte) (int, netip.AddrPort, error) {
	n, proxy, err := c.PacketConn.ReadFrom(c.in[:])
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	client, datagram := c.open(proxy, netip.Addr{}, c.in[:min(n, len(c.in))])
	return copy(p, datagram), client, nil
}

// open returns the client and the datagram of an envelope. For any other datagram it returns its
// source and nil.
func (c *conn) open(from netip.AddrPort, local netip.Addr, b []byte) (netip.AddrPort, []byte) {
	e, ok := c.link.Open(ToServer, from, b)
	if !ok {
		c.reject(from)
		return from, nil
	}
	c.learn(e, local)
	return e.Client, e.Datagram
}

// reject counts a datagram that is no envelope of its source.
func (c *conn) reject(from netip.AddrPort) {
	c.rejected++
	if now := time.Now(); now.Sub(c.warned) >= warnInterval {
		c.log.Warn("datagrams are no envelopes of a proxy: if they are from one, compare its key with the server's, "+
			"and the address that it has for itself with the source", "datagrams", c.rejected, "source", from)
		c.warned, c.rejected = now, 0
	}
}

func (c *conn) learn(e Envelope, local netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = route{proxy: e.Proxy, local: local}
	if len(c.clients) >= maxClients {
		if _, ok := c.clients[e.Client]; !ok {
			c.clients, c.older = make(map[netip.AddrPort]route), c.clients
		}
	}
	c.clients[e.Client] = route{e.Proxy, e.Mark, local}
}

// WriteTo implements transport.PacketConn.
func (c *conn) WriteTo(p []byte, client netip.AddrPort) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	envelope, r, err := c.wrap(c.out[:0], p, client)
	if err == nil {
		_, err = c.PacketConn.WriteTo(envelope, r.proxy)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// wrap appends the envelope of a datagram, and returns the client's route. The lock is held.
func (c *conn) wrap(dst, p []byte, client netip.AddrPort) ([]byte, route, error) {
	r, ok := c.clients[client]
	if !ok {
		if r, ok = c.older[client]; !ok {
			r = c.last
		}
	}
	if !r.proxy.IsValid() || len(p) > MaxDatagram {
		return dst, r, fmt.Errorf("relay: no proxy for %v, or a datagram of %d bytes", client, len(p))
	}
	return c.link.Append(dst, ToClient, Envelope{r.proxy, client, r.mark, p}), r, nil
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

	single sync.Mutex
	one    [1]transport.Datagram // argument of WriteBatch in WriteTo
}

// ReadBatch implements transport.BatchConn.
func (c *batchConn) ReadBatch(into []transport.Datagram) (int, error) {
	n, err := c.inner.ReadBatch(c.in[:min(len(into), len(c.in))])
	if err != nil {
		return 0, err
	}
	for i := range c.in[:n] {
		client, datagram := c.open(c.in[i].Addr, c.in[i].Local, c.in[i].Bytes())
		into[i].N, into[i].Addr, into[i].Local = copy(into[i].Buf, datagram), client, netip.Addr{}
	}
	return n, nil
}

// WriteTo implements transport.PacketConn.
func (c *batchConn) WriteTo(p []byte, client netip.AddrPort) (int, error) {
	c.single.Lock()
	defer c.single.Unlock()
	c.one[0] = transport.Datagram{Buf: p, N: len(p), Addr: client}
	if _, err := c.WriteBatch(c.one[:]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteBatch implements transport.BatchConn.
func (c *batchConn) WriteBatch(out []transport.Datagram) (sent int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for sent < len(out) && err == nil {
		part, n := out[sent:min(sent+batchSize, len(out))], 0
		for ; n < len(part) && err == nil; n++ {
			var envelope []byte
			var r route
			envelope, r, err = c.wrap(c.out[n].Buf[:0], part[n].Bytes(), part[n].Addr)
			c.out[n].N, c.out[n].Addr, c.out[n].Local = len(envelope), r.proxy, r.local
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
