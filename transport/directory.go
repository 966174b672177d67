package transport

import (
	"net/netip"
	"sync"

	"github.com/uplink-rpc/uplink/transport/internal/gate"
)

// directory is who is connected to a listener, over all its shards. It is looked at when a connection begins,
// ends, or names itself since its client has moved, not for each datagram. It is safe for concurrent use, but
// not with a connection's lock held.
type directory struct {
	mu      sync.RWMutex
	ids     map[uint64]*Conn    // all, by session id
	clients map[uint64]*Conn    // open ones, by client id
	pending map[gate.Hash]*Conn // those whose handshake is not over, by their hellos
	guests  map[uint64]*Conn    // the same, by client id
}

func newDirectory() directory {
	return directory{
		ids:     make(map[uint64]*Conn),
		clients: make(map[uint64]*Conn),
		pending: make(map[gate.Hash]*Conn),
		guests:  make(map[uint64]*Conn),
	}
}

// byID returns the connection of a session, or nil.
func (d *directory) byID(id uint64) *Conn {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ids[id]
}

// waiting returns the connection that a hello began, if its handshake is not over, or nil.
func (d *directory) waiting(hello gate.Hash) *Conn {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.pending[hello]
}

// mayWait reports whether one more handshake with that address may be pending if there may be so many. Half of the
// places are for networks that have none, so that those who do not end theirs leave some for others.
func (d *directory) mayWait(from netip.Addr, most int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	switch n := len(d.pending); {
	case n < (most+1)/2:
		return true
	case n >= most:
		return false
	case from.IsLoopback():
		return true
	}
	for _, c := range d.pending {
		if gate.SameNetwork(from, c.RemoteAddr().Addr()) {
			return false
		}
	}
	return true
}

// room reports whether a client may connect if there may be so many: it may always take its own place.
func (d *directory) room(client uint64, most int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.ids) < most || d.clients[client] != nil || d.guests[client] != nil
}

// add adds a connection that is pending. It returns the one of the same client whose place it takes, or nil.
func (d *directory) add(c *Conn) (old *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old = d.guests[c.claims.client]; old != nil {
		delete(d.ids, old.id)
		delete(d.pending, old.hash)
	}
	d.ids[c.id] = c
	d.pending[c.hash] = c
	d.guests[c.claims.client] = c
	return old
}

// open has a pending connection be open, unless it is pending no more. It returns the one of the same client
// whose place it takes, or nil.
func (d *directory) open(c *Conn) (old *Conn, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[c.hash] != c {
		return nil, false
	}
	d.unpend(c)
	old = d.clients[c.claims.client]
	d.clients[c.claims.client] = c
	return old, true
}

// remove takes a connection out, if it is in.
func (d *directory) remove(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[c.hash] == c {
		d.unpend(c)
	}
	if d.ids[c.id] == c {
		delete(d.ids, c.id)
	}
	if d.clients[c.claims.client] == c {
		delete(d.clients, c.claims.client)
	}
}

func (d *directory) unpend(c *Conn) {
	delete(d.pending, c.hash)
	delete(d.guests, c.claims.client)
}

// of returns the connections of a shard.
func (d *directory) of(s *shard) (conns []*Conn) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, c := range d.ids {
		if c.shard == s {
			conns = append(conns, c)
		}
	}
	return conns
}

// counts returns how many connections there are, and how many of them are open.
func (d *directory) counts() (all, open int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.ids), len(d.clients)
}
