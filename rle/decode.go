package rle

import (
	"errors"
	"slices"
)

// Errors of AppendDecode.
var (
	// ErrZeroControl reports a control byte of 0.
	ErrZeroControl = errors.New("rle: control byte is zero")
	// ErrTruncated reports that the code ends within a run or a literal.
	ErrTruncated = errors.New("rle: code is cut short")
	// ErrTooLong reports that the code decodes to more bytes than the caller's limit.
	ErrTooLong = errors.New("rle: decoded bytes exceed the limit")
)

// AppendDecode appends the bytes that src stands for to dst and returns the extended slice. At most
// limit bytes are appended; the limit is checked before each token is decoded. The error is
// ErrZeroControl, ErrTruncated or ErrTooLong, for the first token at fault; dst is then returned
// with its length unchanged, though bytes past its length may have been overwritten. Nothing is
// allocated if dst has room. The free capacity of dst must not overlap src.
func AppendDecode(dst, src []byte, limit int) ([]byte, error) {
	out := dst
	for len(src) > 0 {
		c := int(src[0])
		if c == 0 {
			return dst, ErrZeroControl
		}
		n, size := Token(src[0])
		if size > len(src) {
			return dst, ErrTruncated
		}
		if n > limit {
			return dst, ErrTooLong
		}
		limit -= n
		if c > maxRun {
			out = append(out, src[1:size]...)
		} else {
			out = appendRun(out, src[1], n)
		}
		src = src[size:]
	}
	return out, nil
}

// Token returns the number of plain bytes of the token with this control byte, and the size of the
// token in bytes. It returns 0 and 2 for a control byte of 0.
func Token(control byte) (n, size int) {
	if c := int(control); c > maxRun {
		return c - maxRun, 1 + c - maxRun
	}
	return int(control), 2
}

// appendRun appends n bytes of value b.
func appendRun(dst []byte, b byte, n int) []byte {
	start := len(dst)
	dst = slices.Grow(dst, n)[:start+n]
	run := dst[start:]
	if b == 0 {
		clear(run)
		return dst
	}
	for i := range run {
		run[i] = b
	}
	return dst
}
