// Package pcap copies capture files, pcap and pcapng, and changes the UDP datagrams in them. Its
// input is untrusted: no input causes a panic, or takes more memory than the maximum size of a
// packet.
package pcap

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	maxPacket = 1 << 18 // maximum size of a packet in bytes
	maxBlock  = 1 << 20 // maximum size of a pcapng block in bytes
	// grow is the maximum number of bytes by which a packet may grow.
	grow = 64
)

// Packet is one packet of a capture.
type Packet struct {
	// Number counts packets from 1.
	Number int
	// Link is the link type of the packet's interface.
	Link LinkType
	// Data is the recorded part of the packet, valid during the call.
	Data []byte
}

type rewriter struct {
	in     *bufio.Reader
	out    *bufio.Writer
	edit   func(*Packet) []byte
	order  binary.ByteOrder
	number int   // number of packets so far
	offset int64 // offset of the next bytes to read
	start  int64 // offset of the current record
	buf    bytes.Buffer
	record []byte // scratch for output
}

// Rewrite copies a capture file from r to w in its format, pcap or pcapng. It calls edit for each
// packet. edit returns the packet's new data, at most 64 bytes longer, or nil to leave it
// unchanged. Everything else is copied, except that a truncated simple packet of pcapng becomes an
// enhanced packet without a time. Rewrite returns the number of packets.
//
// An [Error] means that the file is damaged, and contains the position; everything before that was
// written. If the file is not a capture, nothing was written and the error wraps [ErrFormat]. Other
// errors are those of r and w.
func Rewrite(w io.Writer, r io.Reader, edit func(*Packet) []byte) (packets int, err error) {
	c := &rewriter{in: bufio.NewReaderSize(r, 1<<16), out: bufio.NewWriterSize(w, 1<<16), edit: edit}
	err = c.run()
	if flushed := c.out.Flush(); !errors.Is(err, flushed) { // a failed write returns its error again
		err = errors.Join(err, flushed)
	}
	return c.number, err
}

func (c *rewriter) run() error {
	magic, err := c.in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(magic) < 4 {
		return fmt.Errorf("%w: it has %d bytes", ErrFormat, len(magic))
	}
	switch m := binary.LittleEndian.Uint32(magic); {
	case m == ngSection:
		return c.ng()
	case isClassic(m):
		c.order = binary.LittleEndian
		return c.classic()
	case isClassic(binary.BigEndian.Uint32(magic)):
		c.order = binary.BigEndian
		return c.classic()
	case m&0xffff == 0x8b1f:
		return fmt.Errorf("%w: it is compressed: gunzip it first", ErrFormat)
	}
	return fmt.Errorf("%w: it begins with % x", ErrFormat, magic)
}

func (c *rewriter) errorf(format string, args ...any) error {
	return &Error{Packet: c.number + 1, Offset: c.start, Text: fmt.Sprintf(format, args...)}
}

// begin begins a record, and reports whether there is one.
func (c *rewriter) begin() (bool, error) {
	c.start = c.offset
	if _, err := c.in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return false, err
	}
	c.buf.Reset()
	return true, nil
}

// read reads n more bytes of the record and returns the whole record. Memory grows only with bytes
// read.
func (c *rewriter) read(n int) ([]byte, error) {
	got, err := io.CopyN(&c.buf, c.in, int64(n))
	c.offset += got
	if errors.Is(err, io.EOF) {
		return nil, c.errorf("the file ends in it, %d bytes are missing", int64(n)-got)
	}
	return c.buf.Bytes(), err
}

func (c *rewriter) write(b []byte) error {
	_, err := c.out.Write(b)
	return err
}

// packet returns the edited packet, or nil if it is dropped.
func (c *rewriter) packet(link LinkType, data []byte) []byte {
	c.number++
	return c.edit(&Packet{Number: c.number, Link: link, Data: data})
}

// snapLen returns the maximum packet size that the copy declares.
func snapLen(n uint32) uint32 {
	if n == 0 || n > maxPacket {
		return n
	}
	return min(n+grow, maxPacket)
}

// ErrFormat means that a file is not in a format of packet captures.
var ErrFormat = errors.New("neither pcap nor pcapng")

// Error describes the damage of a capture file.
type Error struct {
	// Packet is the number of the damaged packet or, if another block is damaged, of the next
	// packet. The first packet is 1.
	Packet int
	// Offset is the offset of the packet or block in the file, in bytes.
	Offset int64
	// Text describes the problem.
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("packet %d, at byte %d: %s", e.Packet, e.Offset, e.Text)
}

const (
	microseconds = 0xa1b2c3d4
	nanoseconds  = 0xa1b23c4d

	fileHeader   = 24
	recordHeader = 16
)

func isClassic(magic uint32) bool { return magic == microseconds || magic == nanoseconds }

func (c *rewriter) classic() error {
	if _, err := c.begin(); err != nil {
		return err
	}
	header, err := c.read(fileHeader)
	if err != nil {
		return err
	}
	link := LinkType(c.order.Uint32(header[20:])) // the upper half contains other information
	c.order.PutUint32(header[16:], snapLen(c.order.Uint32(header[16:])))
	if err := c.write(header); err != nil {
		return err
	}
	for {
		if more, err := c.begin(); err != nil || !more {
			return err
		}
		if err := c.classicRecord(link); err != nil {
			return err
		}
	}
}

func (c *rewriter) classicRecord(link LinkType) error {
	b, err := c.read(recordHeader)
	if err != nil {
		return err
	}
	size, length := c.order.Uint32(b[8:]), c.order.Uint32(b[12:])
	if size > maxPacket {
		return c.errorf("it says that it has %d bytes, the limit is %d", size, maxPacket)
	}
	if b, err = c.read(int(size)); err != nil {
		return err
	}
	if data := c.packet(link, b[recordHeader:]); data != nil {
		c.putSize(b[8:], size, length, data)
		b = append(append(c.record[:0], b[:recordHeader]...), data...)
		c.record = b
	}
	return c.write(b)
}

// putSize sets the recorded size and the length on the wire of a packet with new data.
func (c *rewriter) putSize(b []byte, size, length uint32, data []byte) {
	c.order.PutUint32(b, uint32(len(data)))
	c.order.PutUint32(b[4:], length+uint32(len(data))-size)
}

// The types of block that are interpreted.
const (
	ngSection   = 0x0a0d0d0a // the same in both byte orders
	ngInterface = 1
	ngOldPacket = 2
	ngSimple    = 3
	ngPacket    = 6

	ngByteOrder = 0x1a2b3c4d
	ngMinBlock  = 12
	// Packet data start at this offset in their block, after type and length.
	ngPacketHeader = 8 + 20
	ngSimpleHeader = 8 + 4
	maxInterfaces  = 1 << 16
)

// packetSource is the description of an interface in a section.
type packetSource struct {
	link    LinkType
	snapLen uint32
}

func (c *rewriter) ng() error {
	var ifs []packetSource
	for {
		if more, err := c.begin(); err != nil || !more {
			return err
		}
		b, err := c.block()
		if err != nil {
			return err
		}
		if b, err = c.ngEdit(b, &ifs); err != nil {
			return err
		}
		if err := c.write(b); err != nil {
			return err
		}
	}
}

func (c *rewriter) block() ([]byte, error) {
	b, err := c.read(ngMinBlock)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(b) == ngSection {
		switch magic := b[8:]; {
		case binary.LittleEndian.Uint32(magic) == ngByteOrder:
			c.order = binary.LittleEndian
		case binary.BigEndian.Uint32(magic) == ngByteOrder:
			c.order = binary.BigEndian
		default:
			return nil, c.errorf("a section whose byte order is % x", magic)
		}
	}
	size := c.order.Uint32(b[4:])
	if size < ngMinBlock || size%4 != 0 || size > maxBlock {
		return nil, c.errorf("a block of %d bytes, want %d to %d, in fours", size, ngMinBlock, maxBlock)
	}
	if b, err = c.read(int(size) - ngMinBlock); err != nil {
		return nil, err
	}
	if end := c.order.Uint32(b[size-4:]); end != size {
		return nil, c.errorf("a block of %d bytes says %d at its end", size, end)
	}
	return b, nil
}

// ngEdit returns the block to write instead of b.
func (c *rewriter) ngEdit(b []byte, ifs *[]packetSource) ([]byte, error) {
	switch c.order.Uint32(b) {
	case ngSection:
		*ifs = nil
		if len(b) < 28 {
			return nil, c.errorf("a section of %d bytes, want 28 or more", len(b))
		}
		c.order.PutUint64(b[16:], ^uint64(0)) // the length changes and is optional
	case ngInterface:
		return b, c.addInterface(b, ifs)
	case ngPacket, ngOldPacket:
		return c.ngPacket(b, *ifs)
	case ngSimple:
		return c.ngSimple(b, *ifs)
	}
	return b, nil
}

func (c *rewriter) addInterface(b []byte, ifs *[]packetSource) error {
	if len(b) < 20 {
		return c.errorf("an interface of %d bytes, want 20 or more", len(b))
	}
	if len(*ifs) == maxInterfaces {
		return c.errorf("more than %d interfaces", maxInterfaces)
	}
	snap := c.order.Uint32(b[12:])
	*ifs = append(*ifs, packetSource{LinkType(c.order.Uint16(b[8:])), snap})
	c.order.PutUint32(b[12:], snapLen(snap))
	return nil
}

func (c *rewriter) ngPacket(b []byte, ifs []packetSource) ([]byte, error) {
	if len(b) < ngPacketHeader+4 {
		return nil, c.errorf("a block of a packet of %d bytes, want %d or more", len(b), ngPacketHeader+4)
	}
	number := c.order.Uint32(b[8:])
	if c.order.Uint32(b) == ngOldPacket {
		number = uint32(c.order.Uint16(b[8:]))
	}
	if number >= uint32(len(ifs)) {
		return nil, c.errorf("it is of interface %d, of %d", number, len(ifs))
	}
	size, length := c.order.Uint32(b[20:]), c.order.Uint32(b[24:])
	if size > maxPacket || int(size) > len(b)-ngPacketHeader-4 {
		return nil, c.errorf("it says that it has %d bytes, its block has %d", size, len(b))
	}
	data := c.packet(ifs[number].link, b[ngPacketHeader:ngPacketHeader+size])
	if data == nil {
		return b, nil
	}
	c.putSize(b[20:], size, length, data)
	options := b[min(ngPacketHeader+(int(size)+3)&^3, len(b)-4) : len(b)-4]
	return c.ngBlock(b[:ngPacketHeader], data, options), nil
}

func (c *rewriter) ngSimple(b []byte, ifs []packetSource) ([]byte, error) {
	if len(b) < ngSimpleHeader+4 || len(ifs) == 0 {
		return nil, c.errorf("a simple packet of %d bytes, with %d interfaces", len(b), len(ifs))
	}
	length := c.order.Uint32(b[8:])
	size := length
	if snap := ifs[0].snapLen; snap != 0 {
		size = min(size, snap)
	}
	if size > maxPacket || int(size) > len(b)-ngSimpleHeader-4 {
		return nil, c.errorf("it says that it has %d bytes, its block has %d", size, len(b))
	}
	old := b[ngSimpleHeader : ngSimpleHeader+size]
	data := c.packet(ifs[0].link, old)
	if data == nil && size == length {
		return b, nil
	}
	if data == nil {
		data = old
	}
	if size == length {
		c.order.PutUint32(b[8:], uint32(len(data)))
		return c.ngBlock(b[:ngSimpleHeader], data, nil), nil
	}
	// It cannot remain a simple packet: where such a packet was truncated is declared only by its
	// interface, and the copy declares another limit.
	var header [ngPacketHeader]byte
	c.order.PutUint32(header[:], ngPacket)
	c.putSize(header[20:], size, length, data)
	return c.ngBlock(header[:], data, nil), nil
}

// ngBlock makes a block from its header, packet data and options.
func (c *rewriter) ngBlock(header, data, options []byte) []byte {
	b := append(append(c.record[:0], header...), data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	b = append(b, options...)
	size := uint32(len(b) + 4)
	b = binary.LittleEndian.AppendUint32(b, 0)
	c.order.PutUint32(b[4:], size)
	c.order.PutUint32(b[size-4:], size)
	c.record = b
	return b
}
