// Package wire encodes and decodes the datagrams of the transport. The first byte contains the
// form:
//
//	bits 7-6  0 short, 1 long, 2 handshake, 3 data
//
// An encrypted datagram is short, long or data. A short or long one has a kind and a packet number,
// and a long one has a connection id too:
//
//	bits 5-3  kind
//	bits 2-0  bits 16-18 of the packet number
//	u64       connection id, in a long one only
//	u16       bits 0-15 of the packet number
//	...       the encrypted body; the bytes before it are authenticated with it
//
// A data datagram is of the data kind and has fewer bits of the packet number. A short datagram is
// of any other kind, or of the data kind with a report before the payload.
//
//	bits 5-0  bits 8-13 of the packet number
//	u8        bits 0-7 of the packet number
//	...       the encrypted body, as above
//
// A handshake datagram has its type in bits 5-0 of the first byte. It belongs to no session, and
// only parts of it are encrypted. All integers are little-endian.
//
// For each layout there is a pair of functions, AppendX and ParseX. Data and reliable bodies are
// opaque here. Parsing does not allocate and does not modify its input, and returns [ErrMalformed]
// for invalid input. Its results share the memory of the input.
package wire

import (
	"encoding/binary"
	"errors"
)

const (
	// Version is the protocol version in a hello.
	Version = 4
	// MinDatagram is the maximum size of a datagram that every path is assumed to carry, with
	// header and tag, in bytes: with UDP it fills 576 bytes of IPv4.
	MinDatagram = 548
	// BaseDatagram is the maximum size of a datagram that ordinary paths are assumed to carry, in
	// bytes. Bodies of datagrams up to this size fit one datagram on such paths, and are sent in
	// parts on others.
	BaseDatagram = 1200
	// MaxDatagram is the maximum size of a datagram in bytes: with UDP and IPv4 it fills an
	// Ethernet frame. Only path size probes, and payloads on a path on which a probe of that size
	// was answered, are longer than BaseDatagram.
	MaxDatagram = 1472
	// MaxTag is the maximum size of an AEAD tag in bytes.
	MaxTag = 16
	// MaxBody is the maximum size of the body of a datagram of BaseDatagram bytes, in bytes.
	MaxBody = BaseDatagram - maxAround

	maxAround = LongSize + MaxTag
)

// BodyOf returns the size of a body that fits a datagram of the given size, with any form and tag.
func BodyOf(datagram int) int { return datagram - maxAround }

// ErrMalformed is the error of all parsers for invalid input.
var ErrMalformed = errors.New("wire: malformed datagram")

// Form is the form of a datagram, in bits 7-6 of its first byte.
type Form uint8

// The forms.
const (
	ShortForm Form = iota
	LongForm
	HandshakeForm
	DataForm
)

const formShift = 6

// FormOf returns the form of a datagram, or [ErrMalformed] for one that is empty or longer than
// [MaxDatagram].
func FormOf(b []byte) (Form, error) {
	if len(b) == 0 || len(b) > MaxDatagram {
		return 0, ErrMalformed
	}
	return Form(b[0] >> formShift), nil
}

const (
	// DataSize is the size of the header of a data datagram in bytes.
	DataSize = 2
	// ShortSize is the size of a short header in bytes.
	ShortSize = 3
	// LongSize is the size of a long header in bytes.
	LongSize = ShortSize + 8
	// DataNumberBits is the number of bits of the packet number in a data datagram.
	DataNumberBits = 14
	// NumberBits is the number of bits of the packet number in short and long datagrams.
	NumberBits = 19
)

// serverShift is the lowest bit of the server id in a session id.
const serverShift = 48

// WithServer returns a random session id with a server id in its highest 16 bits, by which a proxy
// finds the server of a long header. Server id 0 leaves the session id unchanged.
func WithServer(id uint64, server uint16) uint64 {
	if server == 0 {
		return id
	}
	return id<<16>>16 | uint64(server)<<serverShift
}

// ServerOf returns the server id in a session id from [WithServer].
func ServerOf(id uint64) uint16 { return uint16(id >> serverShift) }

const (
	kindShift = 3
	kindMask  = 7
)

// Kind is the kind of an encrypted datagram.
type Kind uint8

// The kinds of encrypted datagrams. All eight values are in use.
const (
	DataKind      Kind = iota // an unreliable payload
	ReliableKind              // segments of the reliable channel
	HeartbeatKind             // keeps the session alive, and measures the RTT
	CloseKind                 // sender has ended the session
	ChallengeKind             // path challenge
	ResponseKind              // path response
	ProbeKind                 // path size probe, or the answer to one
	PartKind                  // a part of the body of a data or reliable datagram
	kinds
)

// Header is the header of an encrypted datagram.
type Header struct {
	Kind   Kind
	Long   bool   // includes the session id
	Report bool   // of the data kind, not Long: the body begins with a [Report]
	ID     uint64 // session id; 0 if not Long
	Number uint32 // low bits of the packet number, [Header.NumberBits] of them
}

// Form returns the form: a header of the data kind that is not long and without a report has the
// data form.
func (h Header) Form() Form {
	switch {
	case h.Long:
		return LongForm
	case h.Kind == DataKind && !h.Report:
		return DataForm
	}
	return ShortForm
}

// Size returns the size of the header on the wire in bytes.
func (h Header) Size() int {
	switch {
	case h.Long:
		return LongSize
	case h.Form() == DataForm:
		return DataSize
	}
	return ShortSize
}

// NumberBits returns the number of bits of the packet number on the wire.
func (h Header) NumberBits() uint {
	if h.Form() == DataForm {
		return DataNumberBits
	}
	return NumberBits
}

// AppendHeader appends h. Higher bits of kind and number are ignored.
func AppendHeader(b []byte, h Header) []byte {
	h.Kind &= kindMask
	h.Number &= 1<<h.NumberBits() - 1
	form := h.Form()
	first := uint8(form) << formShift
	if form == DataForm {
		return append(b, first|uint8(h.Number>>8), uint8(h.Number))
	}
	b = append(b, first|uint8(h.Kind)<<kindShift|uint8(h.Number>>16))
	if h.Long {
		b = binary.LittleEndian.AppendUint64(b, h.ID)
	}
	return binary.LittleEndian.AppendUint16(b, uint16(h.Number))
}

// ParseHeader reads the header of an encrypted datagram. The body follows after [Header.Size]
// bytes. A datagram that is shorter than its header, longer than [MaxDatagram], or of another form
// is [ErrMalformed].
func ParseHeader(b []byte) (Header, error) {
	form, err := FormOf(b)
	if err != nil || form == HandshakeForm {
		return Header{}, ErrMalformed
	}
	h := Header{Long: form == LongForm}
	if form != DataForm {
		h.Kind = Kind(b[0] >> kindShift & kindMask)
	}
	h.Report = form == ShortForm && h.Kind == DataKind
	if len(b) < h.Size() {
		return Header{}, ErrMalformed
	}
	if form == DataForm {
		h.Number = uint32(binary.BigEndian.Uint16(b)) & (1<<DataNumberBits - 1)
		return h, nil
	}
	h.Number = uint32(b[0]&7) << 16
	if h.Long {
		h.ID = binary.LittleEndian.Uint64(b[1:])
		b = b[8:]
	}
	h.Number |= uint32(binary.LittleEndian.Uint16(b[1:]))
	return h, nil
}
