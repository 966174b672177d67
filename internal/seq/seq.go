// Package seq implements the arithmetic of sequence numbers that all codecs and both endpoints
// share: 64-bit numbers from the low bits on the wire, windows of received numbers, and the bytes
// of a window in an ack. The ring of recent values by sequence number is package ringcache.
package seq

import (
	"iter"
	"math/bits"
)

// Unwrap returns the number with the given low bits that is less than 2^width - behind ahead of
// next and otherwise at most behind below it. It is never negative: a number that would be is
// 2^width higher. width is 1 to 63, behind less than 2^width, and low less than 2^width.
func Unwrap(low uint64, width uint, next, behind uint64) uint64 {
	distance := (next - low) & (1<<width - 1)
	if distance > behind || distance > next {
		return next + 1<<width - distance
	}
	return next - distance
}

// Nearest returns the number with the given low bits that is nearest to next. Of two equally near
// ones it is the lower, unless that were negative.
func Nearest(low uint64, width uint, next uint64) uint64 {
	return Unwrap(low, width, next, 1<<(width-1))
}

// Acked yields the numbers that an ack window names, newest first: newest, and newest-1-i for each
// bit i of window that is set. Numbers wrap around below 0.
func Acked[T ~uint16 | ~uint64](newest T, window uint64) iter.Seq[T] {
	return func(yield func(T) bool) {
		if !yield(newest) {
			return
		}
		for ; window != 0; window &= window - 1 {
			if !yield(newest - 1 - T(bits.TrailingZeros64(window))) {
				return
			}
		}
	}
}

// WindowSize is the number of bits of a [Window].
const WindowSize = 64

// Window is the set of the most recently received numbers. The zero value is empty.
type Window struct {
	// Any reports that the window contains a number. Newest and Bits are 0 otherwise.
	Any bool
	// Newest is the highest number that was added.
	Newest uint64
	// Bit i of Bits is set if Newest-1-i was added.
	Bits uint64
}

// Add adds n. It has no effect if n is more than WindowSize below Newest.
func (w *Window) Add(n uint64) {
	switch {
	case !w.Any:
		w.Any, w.Newest = true, n
	case n > w.Newest:
		step := n - w.Newest
		w.Newest, w.Bits = n, w.Bits<<step|1<<(step-1)
	case n < w.Newest:
		w.Bits |= 1 << (w.Newest - n - 1)
	}
}

// Has reports whether n was added. It is false if n is more than WindowSize below Newest.
func (w *Window) Has(n uint64) bool {
	if !w.Any || n > w.Newest {
		return false
	}
	return n == w.Newest || w.Bits>>(w.Newest-n-1)&1 != 0
}

// Low returns the n low bits of the window, those of the numbers from Newest-n on. n is 0 or more.
func (w *Window) Low(n uint64) uint64 { return w.Bits & Mask(n) }

// Mask returns a window of n ones. n is 0 or more.
func Mask(n uint64) uint64 { return 1<<n - 1 }

// ByteLen returns the number of low bytes of v up to the highest one that is not 0.
func ByteLen(v uint64) int { return (bits.Len64(v) + 7) / 8 }

// AppendBits appends the n low bytes of v, low byte first. n is 0 to 8.
func AppendBits(dst []byte, v uint64, n int) []byte {
	for range n {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}

// ParseBits parses the n bytes that AppendBits appended and returns the bytes that follow them. It
// reports false if b is shorter. n is 0 to 8.
func ParseBits(b []byte, n int) (v uint64, rest []byte, ok bool) {
	if len(b) < n {
		return 0, nil, false
	}
	for i, c := range b[:n] {
		v |= uint64(c) << (8 * i)
	}
	return v, b[n:], true
}
