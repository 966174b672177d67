package wire

import "encoding/binary"

const welcomeBody = 18

// Welcome answers a hello: there is a session now.
type Welcome struct {
	Version uint16
	Nonce   uint64 // of the hello
	Session uint64 // the session's id, random
}

// AppendWelcome appends the body of a welcome.
func AppendWelcome(b []byte, w Welcome) []byte {
	b = binary.LittleEndian.AppendUint16(b, w.Version)
	b = binary.LittleEndian.AppendUint64(b, w.Nonce)
	return binary.LittleEndian.AppendUint64(b, w.Session)
}

// ParseWelcome reads the body of a welcome; one of any other length is [ErrMalformed].
func ParseWelcome(body []byte) (Welcome, error) {
	if len(body) != welcomeBody {
		return Welcome{}, ErrMalformed
	}
	return Welcome{
		Version: binary.LittleEndian.Uint16(body),
		Nonce:   binary.LittleEndian.Uint64(body[2:]),
		Session: binary.LittleEndian.Uint64(body[10:]),
	}, nil
}
