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

import "errors"

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
