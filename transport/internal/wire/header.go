package wire

import "encoding/binary"

// HeaderSize is the size of a datagram's header in bytes.
const HeaderSize = 3

const (
	kindBits = 3
	tagBits  = 8 - kindBits
)

// Kind says what a datagram's body is. All eight values are in use.
type Kind uint8

// The kinds of datagram.
const (
	DataKind      Kind = iota // an unreliable payload
	ReliableKind              // segments of the reliable channel
	HelloKind                 // client asks for a session
	WelcomeKind               // listener grants it
	RefuseKind                // listener does not
	HeartbeatKind             // keep-alive and clock
	CloseKind                 // sender has ended the session
	UnknownKind               // listener knows no such session
)

// Header starts each datagram. Hello, refuse and unknown belong to no session: their tag is 0.
// The handshake's datagrams and unknown are not numbered: their number is 0.
type Header struct {
	Kind   Kind
	Tag    uint8  // the low five bits of the session id
	Number uint16 // counts the datagrams of one direction, wrapping
}

// TagOf returns the tag that the datagrams of session id carry.
func TagOf(id uint64) uint8 { return uint8(id & (1<<tagBits - 1)) }

// AppendHeader appends the [HeaderSize] bytes of h. Bits of kind and tag beyond their width are cut off.
func AppendHeader(b []byte, h Header) []byte {
	b = append(b, uint8(h.Kind)&(1<<kindBits-1)|h.Tag<<kindBits)
	return binary.LittleEndian.AppendUint16(b, h.Number)
}

// ParseHeader reads the header of a whole datagram and returns its body, which shares b's memory.
// A datagram shorter than a header or longer than [MaxDatagram] is [ErrMalformed].
func ParseHeader(b []byte) (h Header, body []byte, err error) {
	if len(b) < HeaderSize || len(b) > MaxDatagram {
		return Header{}, nil, ErrMalformed
	}
	h = Header{
		Kind:   Kind(b[0] & (1<<kindBits - 1)),
		Tag:    b[0] >> kindBits,
		Number: binary.LittleEndian.Uint16(b[1:]),
	}
	return h, b[HeaderSize:], nil
}
