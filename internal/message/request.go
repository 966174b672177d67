package message

import (
	"encoding/binary"
	"fmt"
)

const (
	// MaxRequests is the maximum number of a client's requests without an answer.
	MaxRequests = 64
	// MaxRefusal is the maximum size of the reason for which a game refuses a request, in bytes.
	MaxRefusal = 256

	requestHeader = 5
)

// RequestKind is the kind of a message of type Request.
type RequestKind uint8

// The kinds of a Request message. A client sends Ask and Cancel, a DS the others.
const (
	Ask       RequestKind = iota // a message of the game that requests an answer
	Cancel                       // the client no longer waits for the answer; nothing follows
	Answer                       // the answer, a message of the game
	Refusal                      // the game's reason for refusing the request
	Unhandled                    // the DS handles no requests; nothing follows
	requestKinds
)

// String returns the name of the kind.
func (k RequestKind) String() string {
	if k >= requestKinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return [...]string{"request", "cancel", "answer", "refusal", "unhandled"}[k]
}

// maxRequestBody is the maximum size of the body by kind, in bytes.
var maxRequestBody = [requestKinds]int{Ask: MaxMessage, Answer: MaxMessage, Refusal: MaxRefusal}

// AppendRequest appends a Request message with its type. id is the id of the client's Ask.
func AppendRequest(dst []byte, k RequestKind, id uint32, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, byte(Request), byte(k)), id)
	return append(dst, body...)
}

// ParseRequest parses a message Request without its type.
func ParseRequest(b []byte) (k RequestKind, id uint32, body []byte, err error) {
	if len(b) < requestHeader || b[0] >= byte(requestKinds) || len(b)-requestHeader > maxRequestBody[b[0]] {
		return 0, 0, nil, fmt.Errorf("%w: a request of %d bytes", ErrMalformed, len(b))
	}
	return RequestKind(b[0]), binary.LittleEndian.Uint32(b[1:]), b[requestHeader:], nil
}
