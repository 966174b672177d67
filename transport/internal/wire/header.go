package wire

import "encoding/binary"

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
