// Package rangecoder implements a range coder with 16-bit frequencies for small payloads. A payload
// has no header, and ends at the last byte that zero padding does not imply: a likely payload has 0
// bytes. [Coder] joins both directions, so that one function codes and decodes, and adapts the
// probabilities of decisions ([Prob]) and numbers ([IntModel]).
//
// All arithmetic is in integers: the same bits on every platform. Nothing allocates, except the
// growth of the encoder's buffer. Nothing is safe for concurrent use.
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
