package pcap

import (
	"cmp"
	"encoding/binary"
	"net/netip"
)

const (
	protocolUDP = 17
	udpHeader   = 8
	ipv4Header  = 20
	ipv6Header  = 40
	maxOptions  = 8 // maximum number of extension headers of IPv6
)

// Datagram is the UDP datagram of a packet.
type Datagram struct {
	From, To netip.AddrPort
	// Payload is the recorded part of the payload; it shares the packet's memory.
	Payload []byte
	// Cut reports whether only a part of the datagram was recorded.
	Cut bool

	packet       []byte
	ip, udp, end int // offsets of the IP and UDP headers, and of the end of the payload
}

// UDP returns the packet's datagram. It returns false if the packet has another link type or
// protocol, is a fragment, or was truncated before the payload.
func (p *Packet) UDP() (Datagram, bool) {
	ip, ok := p.ip()
	if !ok || len(p.Data) <= ip {
		return Datagram{}, false
	}
	d := Datagram{packet: p.Data, ip: ip}
	var from, to netip.Addr
	switch p.Data[ip] >> 4 {
	case 4:
		from, to, ok = d.ipv4()
	case 6:
		from, to, ok = d.ipv6()
	default:
		return Datagram{}, false
	}
	if !ok || len(p.Data) < d.udp+udpHeader {
		return Datagram{}, false
	}
	u := p.Data[d.udp:]
	size := int(binary.BigEndian.Uint16(u[4:]))
	if size < udpHeader || d.udp+size > d.end {
		return Datagram{}, false
	}
	d.end = d.udp + size
	d.Cut = d.end > len(p.Data)
	d.Payload = p.Data[d.udp+udpHeader : min(d.end, len(p.Data))]
	d.From = netip.AddrPortFrom(from, binary.BigEndian.Uint16(u))
	d.To = netip.AddrPortFrom(to, binary.BigEndian.Uint16(u[2:]))
	return d, true
}

func (d *Datagram) ipv4() (from, to netip.Addr, ok bool) {
	b := d.packet[d.ip:]
	if len(b) < ipv4Header {
		return from, to, false
	}
	header, total := 4*int(b[0]&15), int(binary.BigEndian.Uint16(b[2:]))
	const fragment = 0x3fff // the flag of further fragments, or an offset
	if header < ipv4Header || total < header || b[9] != protocolUDP || binary.BigEndian.Uint16(b[6:])&fragment != 0 {
		return from, to, false
	}
	d.udp, d.end = d.ip+header, d.ip+total
	return netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])), true
}

func (d *Datagram) ipv6() (from, to netip.Addr, ok bool) {
	b := d.packet[d.ip:]
	if len(b) < ipv6Header {
		return from, to, false
	}
	size := int(binary.BigEndian.Uint16(b[4:]))
	next, at := b[6], ipv6Header
	for range maxOptions {
		if next == protocolUDP {
			d.udp, d.end = d.ip+at, d.ip+ipv6Header+size
			return netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:])), true
		}
		switch next {
		case 0, 43, 60: // hop by hop, routing, destination
		default:
			return from, to, false
		}
		if len(b) < at+8 {
			return from, to, false
		}
		next, at = b[at], at+8*(1+int(b[at+1]))
	}
	return from, to, false
}

// Replace appends the packet with another payload to dst, with valid lengths and checksums, and
// returns the extended slice; dst must not overlap with the packet. Bytes after the datagram in the
// packet are kept. It returns false for a truncated datagram, or if the result would exceed the
// maximum length of IP.
func (d *Datagram) Replace(dst, payload []byte) ([]byte, bool) {
	size := udpHeader + len(payload)
	total := d.udp - d.ip + size // without the header that the length of IPv6 excludes
	if d.Cut || total > 0xffff {
		return dst, false
	}
	start := len(dst)
	dst = append(dst, d.packet[:d.udp+udpHeader]...)
	dst = append(dst, payload...)
	end := len(dst)
	dst = append(dst, d.packet[d.end:]...)
	ip, udp := dst[start+d.ip:end], dst[start+d.udp:end]
	binary.BigEndian.PutUint16(udp[4:], uint16(size))
	had := udp[6]|udp[7] != 0
	udp[6], udp[7] = 0, 0
	var addrs []byte
	if ip[0]>>4 == 4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(total))
		header := ip[:d.udp-d.ip]
		header[10], header[11] = 0, 0
		binary.BigEndian.PutUint16(header[10:], ^fold(sum(header)))
		if !had { // in IPv4 the checksum is optional
			return dst, true
		}
		addrs = ip[12:20]
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(total-ipv6Header))
		addrs = ip[8:40]
	}
	checksum := ^fold(sum(addrs) + protocolUDP + uint32(len(udp)) + sum(udp))
	binary.BigEndian.PutUint16(udp[6:], cmp.Or(checksum, 0xffff)) // 0 means no checksum
	return dst, true
}

// sum adds up 16-bit words. It cannot overflow for up to 64 KiB.
func sum(b []byte) (s uint32) {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

// LinkType is the type of an interface, which determines the start of its packets.
type LinkType uint16

// The supported link types. Packets of others are copied.
const (
	Null      LinkType = 0   // BSD loopback: address family, in the recorder's byte order
	Ethernet  LinkType = 1   // with or without VLAN tags
	Raw       LinkType = 101 // IP
	Loop      LinkType = 108 // OpenBSD loopback: like Null, in network byte order
	LinuxSLL  LinkType = 113 // Linux cooked, version 1
	IPv4      LinkType = 228
	IPv6      LinkType = 229
	LinuxSLL2 LinkType = 276 // Linux cooked, version 2
)

// EtherTypes.
const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	typeVLAN = 0x8100
	typeQinQ = 0x88a8
	maxVLANs = 4
)

// ip returns the offset of the packet's IP header, or false if there is none.
func (p *Packet) ip() (offset int, ok bool) {
	b := p.Data
	switch p.Link {
	case Raw, IPv4, IPv6:
		return 0, true
	case Null, Loop:
		// The address families of IPv6 differ between systems; the IP header contains the version.
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

// etherType returns next if the EtherType at offset at is IP. It skips VLAN tags.
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
