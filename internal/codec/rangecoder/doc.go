// Package entropy is a range coder with 16-bit frequencies for small payloads:
// nothing is spent on a header, and a payload ends at the last byte that zero
// padding does not imply, so that a likely one is 0 bytes long. A [Coder] is either half of it, and codes decisions
// and [IntModel] by chances that adapt.
//
// Integers only: the same bits on every platform. None of it allocates,
// apart from growth of the encoder's buffer, or is safe for concurrent use.
package rangecoder

// ScaleBits is the precision of all frequencies.
const ScaleBits = 16

// Scale is the sum of the frequencies of all outcomes of a decision.
const Scale = 1 << ScaleBits

// The range lies in [least, 2^64); it grows by stepBits where it falls below.
const (
	least     = 1 << 32
	stepBits  = 32
	stepBytes = stepBits / 8
)
