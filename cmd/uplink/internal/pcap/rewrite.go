// Package pcap copies capture files, pcap and pcapng, and changes the UDP datagrams in them. It
// reads what strangers recorded: no input panics, and none takes more memory than a packet may
// have.
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
	maxPacket = 1 << 18 // of which one packet may have so many bytes
	maxBlock  = 1 << 20 // and a block of pcapng
	// grow is how much longer a packet may become.
	grow = 64
)

// Packet is one packet of a capture.
type Packet struct {
	// Number counts packets from 1.
	Number int
	// Link is the link type of its interface.
	Link LinkType
	// Data is what was recorded of it, valid during the call.
	Data []byte
	// Length is the packet's length on the wire in bytes, at least that of Data unless the file is
	// wrong.
	Length uint32
}

type rewriter struct {
	in     *bufio.Reader
	out    *bufio.Writer
	edit   func(*Packet) []byte
	order  binary.ByteOrder
	number int   // of the packets before
	offset int64 // of what is read next
	start  int64 // of the record that is being read
	buf    bytes.Buffer
	record []byte // scratch of what is written
}

// Rewrite copies a capture file from r to w, in the format that it has, pcap or pcapng. Each packet
// goes through edit, which returns the packet's new data, at most 64 bytes longer, or nil to leave
// it as it is. All else is copied; a simple packet of pcapng that was cut becomes an enhanced one,
// without a time. It returns how many packets there were.
//
// An [Error] is where the file is damaged, or no capture at all; what came before has been written.
// Other errors are those of r and w.
func Rewrite(w io.Writer, r io.Reader, edit func(*Packet) []byte) (packets int, err error) {
	c := &rewriter{in: bufio.NewReaderSize(r, 1<<16), out: bufio.NewWriterSize(w, 1<<16), edit: edit}
	err = c.run()
	return c.number, errors.Join(err, c.out.Flush())
}

func (c *rewriter) run() error {
	magic, err := c.in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(magic) < 4 {
		return c.errorf("a capture begins with 4 bytes that say what it is, this has %d", len(magic))
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
		return c.errorf("the file is compressed: gunzip it first")
	}
	return c.errorf("this begins with % x: neither pcap nor pcapng", magic)
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

// read reads n more bytes of the record and returns all of it. Memory is taken as bytes come.
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
func (c *rewriter) packet(link LinkType, data []byte, length uint32) []byte {
	c.number++
	return c.edit(&Packet{Number: c.number, Link: link, Data: data, Length: length})
}

// snapLen is the limit of packets' sizes that a copy states.
func snapLen(n uint32) uint32 {
	if n == 0 || n > maxPacket {
		return n
	}
	return min(n+grow, maxPacket)
}

// Error says where a capture file cannot be read.
type Error struct {
	// Packet is the number of the packet at fault, or if it is none the one after it; the first is
	// 1.
	Packet int
	// Offset is where in the file that packet or block begins, in bytes.
	Offset int64
	// Text says what is wrong.
	Text string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("capture: packet %d, at byte %d: %s", e.Packet, e.Offset, e.Text)
}
