// Package wire lays out the datagrams of the transport: three bytes of header, then a body that
// depends on the kind. All integers are little-endian.
//
//	byte 0     low 3 bits kind, high 5 bits session tag
//	bytes 1-2  packet number
//	bytes 3-   body
//
// For each kind there is a pair of functions, AppendX and ParseX, that writes and reads its body.
// Data and reliable bodies are opaque here and have none. Parsing never allocates, never writes to
// its input, and answers anything that it cannot read with [ErrMalformed].
package wire

import "errors"

const (
	// Version is the version of this layout, which hello and welcome carry.
	Version = 1
	// MaxDatagram is the size of the largest datagram, header included, in bytes.
	MaxDatagram = 1200
	// MaxBody is the size of the largest body in bytes.
	MaxBody = MaxDatagram - HeaderSize
)

// ErrMalformed is what every parser returns for a datagram that it cannot read.
var ErrMalformed = errors.New("wire: malformed datagram")
