// Package entries encodes a sequence of messages as one input of a fuzz target.
package entries

import (
	"encoding/binary"
	"iter"
)

const (
	isReliable = 0x80
	isLong     = 0x7f // length byte of a longer message: two bytes with the length follow, low byte first
)

// Of returns the entry of a message: a byte with its length, whose high bit is set if the message
// is reliable, and the message, which is truncated to 65,535 bytes.
func Of(message []byte, reliable bool) []byte {
	message = message[:min(len(message), 1<<16-1)]
	entry := []byte{byte(min(len(message), isLong))}
	if reliable {
		entry[0] |= isReliable
	}
	if len(message) >= isLong {
		entry = binary.LittleEndian.AppendUint16(entry, uint16(len(message)))
	}
	return append(entry, message...)
}

// All returns the messages of an input, and whether they are reliable. The last one may be cut off.
func All(in []byte) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		for len(in) > 0 {
			n, reliable := int(in[0]&^isReliable), in[0]&isReliable != 0
			in = in[1:]
			if n == isLong && len(in) >= 2 {
				n = int(binary.LittleEndian.Uint16(in))
				in = in[2:]
			}
			n = min(n, len(in))
			if !yield(in[:n], reliable) {
				return
			}
			in = in[n:]
		}
	}
}
