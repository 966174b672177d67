package transport

import (
	"encoding/binary"
	"net/netip"
)

// addresses are the connections of a shard by the addresses that send to it. What is looked up for each datagram
// is an integer if the address is of IPv4, which takes a third of the time.
type addresses struct {
	four   map[uint64]*Conn
	others map[netip.AddrPort]*Conn
}

func newAddresses() addresses {
	return addresses{four: make(map[uint64]*Conn), others: make(map[netip.AddrPort]*Conn)}
}

// key4 returns an address of IPv4 as a number.
func key4(a netip.AddrPort) uint64 {
	ip := a.Addr().As4()
	return uint64(binary.BigEndian.Uint32(ip[:]))<<16 | uint64(a.Port())
}

// at returns the connection at an address, or nil.
func (m *addresses) at(a netip.AddrPort) *Conn {
	if a.Addr().Is4() {
		return m.four[key4(a)]
	}
	return m.others[a]
}

// set puts a connection at an address.
func (m *addresses) set(a netip.AddrPort, c *Conn) {
	if a.Addr().Is4() {
		m.four[key4(a)] = c
		return
	}
	m.others[a] = c
}

// remove forgets that a connection is at an address. If another one is there, it stays.
func (m *addresses) remove(a netip.AddrPort, c *Conn) {
	switch {
	case m.at(a) != c:
	case a.Addr().Is4():
		delete(m.four, key4(a))
	default:
		delete(m.others, a)
	}
}

// count returns at how many addresses there are connections.
func (m *addresses) count() int { return len(m.four) + len(m.others) }
