// Package entries encodes a sequence of messages as one input of a fuzz target.
package entries

import "iter"

const maxMessage = 127

// Of returns the entry of a message: its length, with the high bit set if it is reliable, and its
// first bytes.
func Of(message []byte, reliable bool) []byte {
	message = message[:min(len(message), maxMessage)]
	head := byte(len(message))
	if reliable {
		head |= maxMessage + 1
	}
	return append([]byte{head}, message...)
}

// All returns the messages of an input, and whether they are reliable. The last one may be cut off.
func All(in []byte) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		for len(in) > 0 {
			n := min(int(in[0]&maxMessage), len(in)-1)
			if !yield(in[1:1+n], in[0] > maxMessage) {
				return
			}
			in = in[1+n:]
		}
	}
}
