package wire

// UnknownSize is the size of an unknown in bytes, header included. A shorter datagram gets none, so that
// a listener amplifies nothing.
const UnknownSize = 2 * HeaderSize

// Unknown tells that the listener knows no session for a datagram that it got. Anybody can send one:
// it is a hint, no more.
type Unknown struct {
	Echo Header // of that datagram
}

// AppendUnknown appends the body of an unknown.
func AppendUnknown(b []byte, u Unknown) []byte { return AppendHeader(b, u.Echo) }

// ParseUnknown reads the body of an unknown; one of any other length is [ErrMalformed].
func ParseUnknown(body []byte) (Unknown, error) {
	if len(body) != HeaderSize {
		return Unknown{}, ErrMalformed
	}
	h, _, err := ParseHeader(body)
	return Unknown{Echo: h}, err
}
