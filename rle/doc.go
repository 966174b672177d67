// Package rle is the run-length code of the uplink article (see Sources in README.md). It is meant
// for the XOR of two frames, which is mostly zero.
//
// A code is a sequence of tokens, each a control byte c and its data:
//
//	1 to 128    the next byte, repeated c times (a run)
//	129 to 255  the next c-128 bytes as they are (a literal)
//	0           invalid
//
// [AppendEncode] always writes the shortest code there is, at most ceil(n/127) bytes longer than
// its n bytes of input. [AppendDecode] reads any valid code, shortest or not. The code does not
// contain its own length: it ends where the caller's slice ends.
//
// The functions keep no state and may be called concurrently on distinct slices.
package rle

const (
	maxRun     = 128 // bytes in a run
	maxLiteral = 127 // bytes in a literal
)
