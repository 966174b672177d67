// Package pcaptest makes captures for tests: packets of any link type, files of either format and
// byte order.
package pcaptest

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
)

// Frame is a packet as it was recorded.
type Frame struct {
	At     time.Time
	Data   []byte
	Length int // on the wire; 0: that of Data
}

// Packet makes the packet of a UDP datagram, with good lengths and checksums. The order is that of
// the machine that records.
func Packet(link pcap.LinkType, order binary.ByteOrder, from, to netip.AddrPort, payload []byte) []byte {
	v6 := from.Addr().Is6()
	etherType := uint16(0x0800)
	if v6 {
		etherType = 0x86dd
	}
	var b []byte
	switch link {
	case pcap.Ethernet:
		b = append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)
		b = binary.BigEndian.AppendUint16(b, etherType)
	case pcap.LinuxSLL:
		b = append(b, 0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, etherType)
	case pcap.LinuxSLL2:
		b = binary.BigEndian.AppendUint16(b, etherType)
		b = append(b, make([]byte, 18)...)
	case pcap.Null, pcap.Loop:
		family := uint32(2)
		if v6 {
			family = 24
		}
		if link == pcap.Loop {
			order = binary.BigEndian
		}
		b = make([]byte, 4)
		order.PutUint32(b, family)
	default: // nothing is before IP
	}
	return append(b, IP(from, to, payload)...)
}

// IP makes the IP packet of a UDP datagram.
func IP(from, to netip.AddrPort, payload []byte) []byte {
	size := 8 + len(payload)
	var b []byte
	if from.Addr().Is6() {
		b = append(b, 0x60, 0, 0, 0, byte(size>>8), byte(size), 17, 64)
	} else {
		b = append(b, 0x45, 0, byte((20+size)>>8), byte(20+size), 0, 1, 0x40, 0, 64, 17, 0, 0)
	}
	b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	if from.Addr().Is4() {
		binary.BigEndian.PutUint16(b[10:], Checksum(b))
	}
	udp := binary.BigEndian.AppendUint16(nil, from.Port())
	udp = binary.BigEndian.AppendUint16(udp, to.Port())
	udp = append(udp, byte(size>>8), byte(size), 0, 0)
	udp = append(udp, payload...)
	pseudo := append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
	pseudo = append(pseudo, 0, 17, byte(size>>8), byte(size))
	sum := Checksum(append(pseudo, udp...))
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
	return append(b, udp...)
}

// Checksum is the internet's.
func Checksum(b []byte) uint16 {
	var sum uint64
	for i, c := range b {
		sum += uint64(c) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// Classic makes a pcap file with times in nanoseconds.
func Classic(order binary.AppendByteOrder, link pcap.LinkType, frames []Frame) []byte {
	b := order.AppendUint32(nil, 0xa1b23c4d)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = order.AppendUint32(b, 1<<18)
	b = order.AppendUint32(b, uint32(link))
	for _, f := range frames {
		b = order.AppendUint32(b, uint32(f.At.Unix()))
		b = order.AppendUint32(b, uint32(f.At.Nanosecond()))
		b = order.AppendUint32(b, uint32(len(f.Data)))
		b = order.AppendUint32(b, f.length())
		b = append(b, f.Data...)
	}
	return b
}

func (f *Frame) length() uint32 { return uint32(max(f.Length, len(f.Data))) }

// NG makes a pcapng file with one interface, whose times are in nanoseconds: packets in enhanced
// blocks, each with a comment, and blocks of another type between.
func NG(order binary.AppendByteOrder, link pcap.LinkType, frames []Frame) []byte {
	section := order.AppendUint32(nil, 0x1a2b3c4d)
	section = order.AppendUint16(section, 1)
	section = order.AppendUint16(section, 0)
	b := Block(order, nil, 0x0a0d0d0a, append(section, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	iface := order.AppendUint16(nil, uint16(link))
	iface = append(iface, 0, 0, 0, 0, 0, 0)
	iface = order.AppendUint16(iface, 9) // if_tsresol
	iface = order.AppendUint16(iface, 1)
	b = Block(order, b, 1, append(iface, 9, 0, 0, 0, 0, 0, 0, 0))
	for _, f := range frames {
		t := uint64(f.At.UnixNano())
		p := order.AppendUint32(nil, 0)
		p = order.AppendUint32(p, uint32(t>>32))
		p = order.AppendUint32(p, uint32(t))
		p = order.AppendUint32(p, uint32(len(f.Data)))
		p = order.AppendUint32(p, f.length())
		p = append(p, f.Data...)
		for len(p)%4 != 0 {
			p = append(p, 0)
		}
		p = order.AppendUint16(p, 1) // a comment
		p = order.AppendUint16(p, 4)
		p = append(p, "text\x00\x00\x00\x00"...)
		b = Block(order, b, 6, p)
		b = Block(order, b, 4, make([]byte, 4)) // names, none of them
	}
	return b
}

// Block appends a block of pcapng, whose body is in fours.
func Block(order binary.AppendByteOrder, b []byte, kind uint32, body []byte) []byte {
	size := uint32(12 + len(body))
	b = order.AppendUint32(b, kind)
	b = order.AppendUint32(b, size)
	b = append(b, body...)
	return order.AppendUint32(b, size)
}
