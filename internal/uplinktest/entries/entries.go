// Package entries has fuzz targets take a row of messages as one input.
package entries

import "iter"

// longest is how many bytes of a message an entry has at most.
const longest = 127

// Of gives the entry of a message: its length, with the high bit set if it is reliable, and its first bytes.
func Of(message []byte, reliable bool) []byte {
	message = message[:min(len(message), longest)]
	head := byte(len(message))
	if reliable {
		head |= longest + 1
	}
	return append([]byte{head}, message...)
}

// All gives the messages of an input, and whether they are reliable. The last one may be cut off.
func All(in []byte) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		for len(in) > 0 {
			n := min(int(in[0]&longest), len(in)-1)
			if !yield(in[1:1+n], in[0] > longest) {
				return
			}
			in = in[1+n:]
		}
	}
}
