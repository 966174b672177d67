package pcap

import "encoding/binary"

// LinkType says what the packets of an interface begin with.
type LinkType uint16

// The link types that are looked into; those of others are copied.
const (
	Null      LinkType = 0   // BSD loopback: address family, in the recorder's byte order
	Ethernet  LinkType = 1   // with or without VLAN tags
	Raw       LinkType = 101 // IP
	Loop      LinkType = 108 // OpenBSD loopback: the same as Null in network order
	LinuxSLL  LinkType = 113 // Linux cooked, version 1
	IPv4      LinkType = 228
	IPv6      LinkType = 229
	LinuxSLL2 LinkType = 276 // Linux cooked, version 2
)

// Ethernet's types.
const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	typeVLAN = 0x8100
	typeQinQ = 0x88a8
	maxVLANs = 4
)

// ip returns where the packet's IP header begins, or false if it has none.
func (p *Packet) ip() (offset int, ok bool) {
	b := p.Data
	switch p.Link {
	case Raw, IPv4, IPv6:
		return 0, true
	case Null, Loop:
		// The families of IPv6 differ from system to system; the IP header says which it is.
		return 4, len(b) > 4
	case Ethernet:
		return etherType(b, 12, 14)
	case LinuxSLL:
		return etherType(b, 14, 16)
	case LinuxSLL2:
		return etherType(b, 0, 20)
	}
	return 0, false
}

// etherType looks at a type at one offset for an IP header at another.
func etherType(b []byte, at, next int) (offset int, ok bool) {
	for range maxVLANs {
		if len(b) < max(next, at+2) {
			return 0, false
		}
		switch binary.BigEndian.Uint16(b[at:]) {
		case typeIPv4, typeIPv6:
			return next, true
		case typeVLAN, typeQinQ:
			at, next = next+2, next+4
		default:
			return 0, false
		}
	}
	return 0, false
}
