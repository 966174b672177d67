package wire

// Type is the type of a handshake datagram.
type Type uint8

// The types. A client sends hellos only.
const (
	HelloType   Type = iota // client asks for a session
	RetryType               // listener asks whether the client owns its address
	WelcomeType             // listener grants a session, or says why not; authenticated
	RefuseType              // listener cannot even say that; a hint
	UnknownType             // listener knows no such session; a hint
	types
)

const typeMask = 1<<formShift - 1

// ParseType returns the type of a handshake datagram, or [ErrMalformed] for any other.
func ParseType(b []byte) (Type, error) {
	form, err := FormOf(b)
	if err != nil || form != HandshakeForm || len(b) > BaseDatagram {
		return 0, ErrMalformed
	}
	t := Type(b[0] & typeMask)
	if t >= types {
		return 0, ErrMalformed
	}
	return t, nil
}

func appendType(b []byte, t Type) []byte { return append(b, uint8(HandshakeForm)<<formShift|uint8(t)) }

// bodyOf returns what follows the first byte of a handshake datagram of that type.
func bodyOf(b []byte, want Type) ([]byte, error) {
	if t, err := ParseType(b); err != nil || t != want {
		return nil, ErrMalformed
	}
	return b[1:], nil
}
