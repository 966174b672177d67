package wire

import "encoding/binary"

const (
	welcomeHeader = 1 + 8
	// grantMessage is the size of a key exchange's answer: a public key, the grant, a seal.
	grantMessage = 32 + GrantSize + 16
	// WelcomeSize is the size of a welcome in bytes.
	WelcomeSize = welcomeHeader + grantMessage
)

// Welcome answers a hello. Its message can be read by the client alone, who knows by it that it comes
// from the listener which the client's token names.
type Welcome struct {
	Nonce   uint64 // of the hello
	Message []byte // of the key exchange; its payload is a [Grant]
}

// AppendWelcome appends a welcome.
func AppendWelcome(b []byte, w Welcome) []byte {
	b = binary.LittleEndian.AppendUint64(appendType(b, WelcomeType), w.Nonce)
	return append(b, w.Message...)
}

// ParseWelcome reads a welcome; one of any other length than [WelcomeSize] is [ErrMalformed].
func ParseWelcome(b []byte) (Welcome, error) {
	body, err := bodyOf(b, WelcomeType)
	if err != nil || len(b) != WelcomeSize {
		return Welcome{}, ErrMalformed
	}
	return Welcome{Nonce: binary.LittleEndian.Uint64(body), Message: body[8:]}, nil
}
