package wire

import "encoding/binary"

const refuseBody = 9

// RefuseReason says why a listener refuses a session.
type RefuseReason uint8

// The reasons to refuse.
const (
	RefuseVersion RefuseReason = iota + 1 // the listener does not speak the hello's version
	RefuseFull                            // the listener has as many sessions as it may
)

// Refuse answers a hello: there will be no session.
type Refuse struct {
	Nonce  uint64 // of the hello
	Reason RefuseReason
}

// AppendRefuse appends the body of a refuse.
func AppendRefuse(b []byte, r Refuse) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Nonce)
	return append(b, uint8(r.Reason))
}

// ParseRefuse reads the body of a refuse; one of any other length is [ErrMalformed]. The reason may be
// one that this version does not know.
func ParseRefuse(body []byte) (Refuse, error) {
	if len(body) != refuseBody {
		return Refuse{}, ErrMalformed
	}
	return Refuse{
		Nonce:  binary.LittleEndian.Uint64(body),
		Reason: RefuseReason(body[8]),
	}, nil
}
