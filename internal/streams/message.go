package streams

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxStreams is the maximum number of streams of a session in each direction.
	MaxStreams = 8
	// Window is the maximum number of bytes of a stream that the reader has not read yet.
	Window = 64 << 10
	// MaxName is the maximum size of a stream's name, MaxReason the maximum size of the reason of
	// an abort. Both are in bytes.
	MaxName, MaxReason = 128, 256
	// maxData is the maximum size of the data in a message. A message of this size fills a segment.
	maxData = 1146

	// ReservedPrefix is the prefix of stream names that games cannot use.
	ReservedPrefix = "uplink."

	creditSize = 3
)

// errMalformed reports an invalid message.
var errMalformed = errors.New("malformed message of a stream")

// kind is the kind of a message, in the high bits of its first byte. The low 3 bits are the
// stream's number.
type kind uint8

// The kinds of messages. The reading end sends credit and done, the writing end the others.
const (
	open   kind = iota // followed by the name
	data               // followed by 1 to maxData bytes
	ending             // all data was sent; nothing follows
	abort              // the writer gave up; followed by the reason
	credit             // followed by the number of bytes that the game has read since the last credit
	done               // the game has stopped reading; followed by a result. The number is free again
	kinds

	numberBits = 3
)

// result is the result with which the reading end finished a stream.
type result uint8

const (
	complete  result = iota // the game has read everything
	stopped                 // the game stopped reading before the end
	unhandled               // the game handles no streams
	results
)

// bodies is the minimum and maximum size of the bytes after the first one, by kind.
var bodies = [kinds][2]int{
	open: {1, MaxName}, data: {1, maxData}, ending: {}, abort: {0, MaxReason}, credit: {creditSize, creditSize}, done: {1, 1},
}

func appendHeader(b []byte, k kind, number int) []byte {
	return append(b, byte(k)<<numberBits|byte(number))
}

func appendCredit(b []byte, number, n int) []byte {
	var le [4]byte
	binary.LittleEndian.PutUint32(le[:], uint32(n))
	return append(appendHeader(b, credit, number), le[:creditSize]...)
}

// parse parses a message. n is the number of bytes of a credit, or the result of a done.
func parse(b []byte) (k kind, number int, body []byte, n int, err error) {
	if len(b) == 0 || b[0]>>numberBits >= byte(kinds) {
		return 0, 0, nil, 0, fmt.Errorf("%w: %d bytes of unknown kind", errMalformed, len(b))
	}
	k, number, body = kind(b[0]>>numberBits), int(b[0]&(1<<numberBits-1)), b[1:]
	if size := bodies[k]; len(body) < size[0] || len(body) > size[1] {
		return 0, 0, nil, 0, fmt.Errorf("%w: %d bytes of kind %d", errMalformed, len(b), k)
	}
	switch k {
	case credit:
		n = int(body[0]) | int(body[1])<<8 | int(body[2])<<16
	case done:
		if n = int(body[0]); n >= int(results) {
			return 0, 0, nil, 0, fmt.Errorf("%w: result %d", errMalformed, n)
		}
	default:
	}
	return k, number, body, n, nil
}
