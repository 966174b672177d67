package wire

// Unknown tells that the listener knows no session for a datagram that it got. Anybody can send one:
// it is a hint, no more.
type Unknown struct {
	Echo Header // of that datagram
}

// UnknownSize returns the size of an unknown in bytes. A shorter datagram gets none, so that a listener
// amplifies nothing.
func UnknownSize(echo Header) int { return 1 + echo.Size() }

// AppendUnknown appends an unknown.
func AppendUnknown(b []byte, u Unknown) []byte {
	return AppendHeader(appendType(b, UnknownType), u.Echo)
}

// ParseUnknown reads an unknown; one of any other length is [ErrMalformed].
func ParseUnknown(b []byte) (Unknown, error) {
	body, err := bodyOf(b, UnknownType)
	if err != nil {
		return Unknown{}, ErrMalformed
	}
	echo, err := ParseHeader(body)
	if err != nil || echo.Size() != len(body) {
		return Unknown{}, ErrMalformed
	}
	return Unknown{Echo: echo}, nil
}
