package wire

import "encoding/binary"

// RetrySize is the size of a retry in bytes.
const RetrySize = 1 + 8 + CookieSize

// Retry answers a hello without a good cookie: the client shall say it again with this one.
type Retry struct {
	Nonce  uint64 // of the hello
	Cookie [CookieSize]byte
}

// AppendRetry appends a retry.
func AppendRetry(b []byte, r Retry) []byte {
	b = binary.LittleEndian.AppendUint64(appendType(b, RetryType), r.Nonce)
	return append(b, r.Cookie[:]...)
}

// ParseRetry reads a retry; one of any other length is [ErrMalformed].
func ParseRetry(b []byte) (Retry, error) {
	body, err := bodyOf(b, RetryType)
	if err != nil || len(b) != RetrySize {
		return Retry{}, ErrMalformed
	}
	r := Retry{Nonce: binary.LittleEndian.Uint64(body)}
	copy(r.Cookie[:], body[8:])
	return r, nil
}
