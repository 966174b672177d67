package wire

import "encoding/binary"

// HelloSize is the size of a hello in bytes, header and padding included. Padding makes it longer
// than any answer, so that a listener amplifies nothing.
const HelloSize = 64

// Hello asks for a session. Version and Nonce keep their places in all versions of this layout.
type Hello struct {
	Version uint16
	Nonce   uint64 // chosen by the client, one for each attempt to connect
}

// AppendHello appends the body of a hello, zero padding included.
func AppendHello(b []byte, h Hello) []byte {
	end := len(b) + HelloSize - HeaderSize
	b = binary.LittleEndian.AppendUint16(b, h.Version)
	b = binary.LittleEndian.AppendUint64(b, h.Nonce)
	var zeros [HelloSize]byte
	return append(b, zeros[:end-len(b)]...)
}

// ParseHello reads the body of a hello. It may be longer than [HelloSize] says, and what follows the
// nonce is ignored: another version may have put something there. A shorter one is [ErrMalformed].
func ParseHello(body []byte) (Hello, error) {
	if len(body) < HelloSize-HeaderSize {
		return Hello{}, ErrMalformed
	}
	return Hello{
		Version: binary.LittleEndian.Uint16(body),
		Nonce:   binary.LittleEndian.Uint64(body[2:]),
	}, nil
}
