// Package wire lays out the datagrams of the transport. The first byte tells the form:
//
//	bits 7-6  0 short, 1 long, 2 handshake; 3 is reserved
//
// A sealed datagram, short or long, has a kind and a packet number; a long one names its session too:
//
//	bits 5-3  kind
//	bits 2-0  bits 16-18 of the packet number
//	u64       connection id, in a long one only
//	u16       bits 0-15 of the packet number
//	...       the body, sealed; the bytes before it are authenticated with it
//
// A handshake datagram, whose first byte ends in its type, belongs to no session and is not sealed as a
// whole; parts of it are. All integers are little-endian.
//
// For each layout there is a pair of functions, AppendX and ParseX. Data and reliable bodies are opaque
// here and have none. Parsing never allocates, never writes to its input, and answers anything that it
// cannot read with [ErrMalformed]. What a parser returns shares the memory of its input.
package wire

import (
	"encoding/binary"
	"errors"
)

const (
	// Version is the version of this layout, which a hello carries.
	Version = 2
	// BaseDatagram is the size of the largest datagram, header and seal included, that every path is assumed
	// to carry, in bytes.
	BaseDatagram = 1200
	// MaxDatagram is the size of the largest datagram of all, in bytes: with UDP and IPv4 it fills a frame of
	// Ethernet. Only probes, and payloads on a path that a probe of that size has passed, are longer than
	// BaseDatagram.
	MaxDatagram = 1472
	// MaxTag is the size of the largest seal in bytes.
	MaxTag = 16
	// MaxBody is the size of the largest body of a datagram of BaseDatagram bytes, in bytes.
	MaxBody = BaseDatagram - maxAround

	maxAround = LongSize + MaxTag
)

// BodyOf returns the size of the largest body of a datagram of a size: whatever the form and the seal are, it fits.
func BodyOf(datagram int) int { return datagram - maxAround }

// ErrMalformed is what every parser returns for a datagram that it cannot read.
var ErrMalformed = errors.New("wire: malformed datagram")

// Form is what the first byte of a datagram begins with.
type Form uint8

// The forms.
const (
	ShortForm Form = iota
	LongForm
	HandshakeForm
	reservedForm
)

const formShift = 6

// FormOf returns the form of a datagram, or [ErrMalformed] for one that is empty, longer than
// [MaxDatagram], or of no form of this version.
func FormOf(b []byte) (Form, error) {
	if len(b) == 0 || len(b) > MaxDatagram {
		return reservedForm, ErrMalformed
	}
	f := Form(b[0] >> formShift)
	if f == reservedForm {
		return f, ErrMalformed
	}
	return f, nil
}

const (
	// ShortSize is the size of a short header in bytes.
	ShortSize = 3
	// LongSize is the size of a long header in bytes.
	LongSize = ShortSize + 8
	// NumberBits is how many bits of a packet number are on the wire.
	NumberBits = 19
)

const (
	numberMask = 1<<NumberBits - 1
	kindShift  = 3
	kindMask   = 7
)

// Kind says what the body of a sealed datagram is.
type Kind uint8

// The kinds of sealed datagram. All eight values are in use.
const (
	DataKind        Kind = iota // an unreliable payload
	ReliableKind                // segments of the reliable channel
	HeartbeatKind               // keep-alive and clock
	CloseKind                   // sender has ended the session
	ChallengeKind               // are you at this address?
	ResponseKind                // yes
	ProbeKind                   // does a datagram of this size arrive?
	ProbeAnswerKind             // yes
	kinds
)

// Header starts each sealed datagram.
type Header struct {
	Kind   Kind
	Long   bool   // names its session
	ID     uint64 // of the session; 0 if not Long
	Number uint32 // counts the datagrams of one direction, modulo 2^NumberBits
}

// Size returns the size of the header on the wire in bytes.
func (h Header) Size() int {
	if h.Long {
		return LongSize
	}
	return ShortSize
}

// AppendHeader appends h. Bits of kind and number beyond their width are cut off.
func AppendHeader(b []byte, h Header) []byte {
	first := uint8(h.Kind&kindMask)<<kindShift | uint8(h.Number&numberMask>>16)
	if h.Long {
		b = append(b, first|uint8(LongForm)<<formShift)
		b = binary.LittleEndian.AppendUint64(b, h.ID)
	} else {
		b = append(b, first)
	}
	return binary.LittleEndian.AppendUint16(b, uint16(h.Number))
}

// ParseHeader reads the header of a sealed datagram. The sealed body is what follows [Header.Size] bytes. A
// datagram shorter than its header, longer than [MaxDatagram] or of another form is [ErrMalformed].
func ParseHeader(b []byte) (Header, error) {
	form, err := FormOf(b)
	h := Header{Long: form == LongForm}
	if err != nil || form == HandshakeForm || len(b) < h.Size() {
		return Header{}, ErrMalformed
	}
	h.Kind = Kind(b[0] >> kindShift & kindMask)
	h.Number = uint32(b[0]&7) << 16
	if h.Long {
		h.ID = binary.LittleEndian.Uint64(b[1:])
		b = b[8:]
	}
	h.Number |= uint32(binary.LittleEndian.Uint16(b[1:]))
	return h, nil
}
