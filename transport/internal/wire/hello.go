package wire

import "encoding/binary"

const (
	// CookieSize is the size of a cookie in bytes.
	CookieSize = 24
	// HelloSize is the size of the smallest hello in bytes.
	HelloSize = 64

	helloHeader = 1 + 2 + 8 + CookieSize + 2
	// MaxHelloMessage is the size of the largest handshake message of a hello in bytes.
	MaxHelloMessage = BaseDatagram - helloHeader
)

// Hello asks for a session. Version and Nonce keep their places in all versions of this layout.
type Hello struct {
	Version uint16
	Nonce   uint64           // chosen by the client, one for each attempt to connect
	Cookie  [CookieSize]byte // from a retry; zeros at first
	Message []byte           // of the key exchange; empty at first
}

// AppendHello appends a hello. Zeros behind it make it at least [HelloSize] bytes long, and at least as
// long as a welcome if it has a message: no answer is longer than its cause. The message has at most
// [MaxHelloMessage] bytes.
func AppendHello(b []byte, h Hello) []byte {
	size := HelloSize
	if len(h.Message) > 0 {
		size = max(WelcomeSize, helloHeader+len(h.Message))
	}
	end := len(b) + max(size, HelloSize)
	b = appendType(b, HelloType)
	b = binary.LittleEndian.AppendUint16(b, h.Version)
	b = binary.LittleEndian.AppendUint64(b, h.Nonce)
	b = append(b, h.Cookie[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h.Message)))
	b = append(b, h.Message...)
	var zeros [max(HelloSize, WelcomeSize)]byte
	return append(b, zeros[:max(end-len(b), 0)]...)
}

// ParseHello reads a hello. Of another version only Version and Nonce are set. One that is shorter than
// AppendHello makes it is [ErrMalformed]; what follows the message is ignored.
func ParseHello(b []byte) (Hello, error) {
	body, err := bodyOf(b, HelloType)
	if err != nil || len(b) < HelloSize {
		return Hello{}, ErrMalformed
	}
	h := Hello{Version: binary.LittleEndian.Uint16(body), Nonce: binary.LittleEndian.Uint64(body[2:])}
	if h.Version != Version {
		return h, nil
	}
	copy(h.Cookie[:], body[10:])
	size := int(binary.LittleEndian.Uint16(body[10+CookieSize:]))
	rest := b[helloHeader:]
	if size > len(rest) || size > 0 && len(b) < WelcomeSize {
		return Hello{}, ErrMalformed
	}
	h.Message = rest[:size]
	return h, nil
}
