package wire

import "encoding/binary"

// RefuseSize is the size of a refuse in bytes.
const RefuseSize = 1 + 8 + 1

// RefuseReason says why a listener cannot answer a hello.
type RefuseReason uint8

// The reasons to refuse.
const (
	RefuseVersion RefuseReason = iota + 1 // the listener does not speak the hello's version
	RefuseBusy                            // there are too many handshakes, try again later
	RefuseKey                             // the hello's message cannot be read: it is for another listener's key
)

// Refuse answers a hello that cannot be answered with authentication. Its layout is the same in all
// versions.
type Refuse struct {
	Nonce  uint64 // of the hello
	Reason RefuseReason
}

// AppendRefuse appends a refuse.
func AppendRefuse(b []byte, r Refuse) []byte {
	b = binary.LittleEndian.AppendUint64(appendType(b, RefuseType), r.Nonce)
	return append(b, uint8(r.Reason))
}

// ParseRefuse reads a refuse; one of any other length is [ErrMalformed]. The reason may be one that this
// version does not know.
func ParseRefuse(b []byte) (Refuse, error) {
	body, err := bodyOf(b, RefuseType)
	if err != nil || len(b) != RefuseSize {
		return Refuse{}, ErrMalformed
	}
	return Refuse{Nonce: binary.LittleEndian.Uint64(body), Reason: RefuseReason(body[8])}, nil
}
