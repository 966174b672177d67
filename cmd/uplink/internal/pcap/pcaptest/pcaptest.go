// Package pcaptest makes captures for tests: packets of any link type, files of either format and
// byte order.
package pcaptest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/pcap"
)

// Frame is a recorded packet.
type Frame struct {
	At     time.Time
	Data   []byte
	Length int // length on the wire; 0: the length of Data
}

// Packet returns the packet of a UDP datagram, with valid lengths and checksums. order is the byte
// order of the recording machine.
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

// IP returns the IP packet of a UDP datagram.
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
	udp := put(binary.BigEndian, nil, from.Port(), to.Port(), uint16(size), uint16(0), payload)
	pseudo := put(binary.BigEndian, nil, from.Addr().AsSlice(), to.Addr().AsSlice(), uint16(17), uint16(size), udp)
	binary.BigEndian.PutUint16(udp[6:], cmp.Or(Checksum(pseudo), 0xffff))
	return append(b, udp...)
}

// Checksum returns the Internet checksum.
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

// put appends integers in a byte order, and byte slices unchanged.
func put(order binary.AppendByteOrder, b []byte, values ...any) []byte {
	for _, v := range values {
		switch v := v.(type) {
		case uint16:
			b = order.AppendUint16(b, v)
		case uint32:
			b = order.AppendUint32(b, v)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

// Classic returns a pcap file with times in nanoseconds.
func Classic(order binary.AppendByteOrder, link pcap.LinkType, frames []Frame) []byte {
	b := put(order, nil, uint32(0xa1b23c4d), uint16(2), uint16(4), make([]byte, 8), uint32(1<<18), uint32(link))
	for _, f := range frames {
		b = put(order, b, uint32(f.At.Unix()), uint32(f.At.Nanosecond()), uint32(len(f.Data)), f.length(), f.Data)
	}
	return b
}

func (f *Frame) length() uint32 { return uint32(max(f.Length, len(f.Data))) }

// NG returns a pcapng file with one interface and times in nanoseconds. Packets are in enhanced
// blocks, each with a comment, with blocks of another type between them.
func NG(order binary.AppendByteOrder, link pcap.LinkType, frames []Frame) []byte {
	unknown := bytes.Repeat([]byte{0xff}, 8) // unknown section length
	b := Block(order, nil, 0x0a0d0d0a, put(order, nil, uint32(0x1a2b3c4d), uint16(1), uint16(0), unknown))
	const resolution = 9 // number of the option if_tsresol, and its value
	iface := put(order, nil, uint16(link), make([]byte, 6), uint16(resolution), uint16(1))
	b = Block(order, b, 1, append(iface, resolution, 0, 0, 0, 0, 0, 0, 0))
	for _, f := range frames {
		t := uint64(f.At.UnixNano())
		p := put(order, nil, uint32(0), uint32(t>>32), uint32(t), uint32(len(f.Data)), f.length(), f.Data)
		p = append(p, make([]byte, -len(p)&3)...)
		b = Block(order, b, 6, put(order, p, uint16(1), uint16(4), []byte("text\x00\x00\x00\x00")))
		b = Block(order, b, 4, make([]byte, 4)) // name resolution block without names
	}
	return b
}

// Block appends a pcapng block. The size of body is a multiple of 4.
func Block(order binary.AppendByteOrder, b []byte, kind uint32, body []byte) []byte {
	size := uint32(12 + len(body))
	return put(order, b, kind, size, body, size)
}
