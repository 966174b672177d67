package endpoint

import (
	"context"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/uplink-rpc/uplink/internal/transport/admission"
	"github.com/uplink-rpc/uplink/internal/transport/session"
)

// directory contains the connections of all shards of a listener. It is used when a connection
// starts or ends, and for datagrams with a long header. It is safe for concurrent use, but not with
// a connection's lock held.
type directory struct {
	mu      sync.RWMutex
	ids     map[uint64]*Conn         // all connections, by session id
	clients map[uint64]*Conn         // open connections, by client id
	hellos  map[admission.Hash]*Conn // pending connections, by the hash of their hello
	pending map[uint64]*Conn         // pending connections, by client id
	// asking contains the calls of [Config.Admit] that have not returned, by the hash of the
	// client's hello. It is nil after the listener has stopped.
	asking map[admission.Hash]asking
}

func newDirectory() directory {
	return directory{
		ids:     make(map[uint64]*Conn),
		clients: make(map[uint64]*Conn),
		hellos:  make(map[admission.Hash]*Conn),
		pending: make(map[uint64]*Conn),
		asking:  make(map[admission.Hash]asking),
	}
}

func (d *directory) byID(id uint64) *Conn {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ids[id]
}

func (d *directory) byHello(hello admission.Hash) *Conn {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.hellos[hello]
}

// mayPend reports whether another handshake with that address may be pending, of at most limit.
// Half of them are reserved for networks without a pending session.
func (d *directory) mayPend(from netip.Addr, limit int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	switch n := len(d.hellos) + len(d.asking); {
	case n < (limit+1)/2:
		return true
	case n >= limit:
		return false
	case from.IsLoopback():
		return true
	}
	for _, c := range d.hellos {
		if admission.SameNetwork(from, c.RemoteAddr().Addr()) {
			return false
		}
	}
	for _, a := range d.asking {
		if admission.SameNetwork(from, a.from) {
			return false
		}
	}
	return true
}

// mayConnect reports whether a client may connect, if at most limit connections are permitted: it
// may always replace its own.
func (d *directory) mayConnect(client uint64, limit int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.ids) < limit || d.clients[client] != nil || d.pending[client] != nil
}

// add adds a pending connection. It returns the pending one of the same client that it replaces, or
// nil.
func (d *directory) add(c *Conn) (old *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old = d.pending[c.client]; old != nil {
		delete(d.ids, old.id)
		delete(d.hellos, old.hash)
	}
	d.ids[c.id] = c
	d.hellos[c.hash] = c
	d.pending[c.client] = c
	return old
}

// open changes a connection from pending to open. It returns the open one of the same client that
// it replaces, or nil, and reports whether the connection was pending.
func (d *directory) open(c *Conn) (old *Conn, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hellos[c.hash] != c {
		return nil, false
	}
	delete(d.hellos, c.hash)
	delete(d.pending, c.client)
	if old = d.clients[c.client]; old != nil && old.kept.Load() {
		old = nil
	}
	d.clients[c.client] = c
	return old, true
}

func (d *directory) remove(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hellos[c.hash] == c {
		delete(d.hellos, c.hash)
		delete(d.pending, c.client)
	}
	deleteIf(d.ids, c.id, c)
	deleteIf(d.clients, c.client, c)
}

func (d *directory) all() []*Conn {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Collect(maps.Values(d.ids))
}

func (d *directory) empty() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.ids)+len(d.asking) == 0
}

func (d *directory) counts() (all, open int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.ids), len(d.clients)
}

// paths maps the paths of a shard's datagrams to connections. For IPv4 the key is an integer,
// because the lookup then takes a third of the time: the address and port of the peer, and 16 bits
// of the local address. A NAT may give two peers one address if they dial different addresses of
// the listener. IPv6 has no such NATs.
type paths struct {
	ipv4 map[uint64]*Conn
	ipv6 map[netip.AddrPort]*Conn
}

func newPaths() paths {
	return paths{ipv4: make(map[uint64]*Conn), ipv6: make(map[netip.AddrPort]*Conn)}
}

func ipv4Key(p session.Path) uint64 {
	ip := p.Addr.Addr().As4()
	key := uint64(binary.BigEndian.Uint32(ip[:]))<<32 | uint64(p.Addr.Port())<<16
	if p.Local.Is4() {
		ip = p.Local.As4()
		key |= uint64(binary.BigEndian.Uint16(ip[2:]))
	}
	return key
}

func (m *paths) get(p session.Path) *Conn {
	if p.Addr.Addr().Is4() {
		return m.ipv4[ipv4Key(p)]
	}
	return m.ipv6[p.Addr]
}

func (m *paths) set(p session.Path, c *Conn) {
	if p.Addr.Addr().Is4() {
		m.ipv4[ipv4Key(p)] = c
	} else {
		m.ipv6[p.Addr] = c
	}
}

func (m *paths) remove(p session.Path, c *Conn) {
	if p.Addr.Addr().Is4() {
		deleteIf(m.ipv4, ipv4Key(p), c)
	} else {
		deleteIf(m.ipv6, p.Addr, c)
	}
}

func deleteIf[K comparable](m map[K]*Conn, k K, c *Conn) {
	if m[k] == c {
		delete(m, k)
	}
}

// asking is a call of [Config.Admit].
type asking struct {
	from   netip.Addr
	cancel context.CancelFunc
}

func (d *directory) isAsking(hello admission.Hash) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, ok := d.asking[hello]
	return ok
}

// startAsking adds a call, unless the listener has stopped: then it cancels the call and reports
// false.
func (d *directory) startAsking(hello admission.Hash, a asking) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking == nil {
		a.cancel()
		return false
	}
	d.asking[hello] = a
	return true
}

func (d *directory) endAsking(hello admission.Hash) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asking, hello)
}

// stopAsking cancels all calls and those that are started later.
func (d *directory) stopAsking() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asking {
		a.cancel()
	}
	d.asking = nil
}
