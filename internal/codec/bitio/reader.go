// Package bitio writes and reads integers of 0 to 64 bits, least significant bit first within each
// byte.
//
// A [Writer] appends to a slice of the caller, a [Reader] reads one and never writes to it. Both
// are reused with Reset and allocate nothing once the caller's slice has room. Neither is safe for
// concurrent use.
package bitio

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Errors that Reader.Err reports.
var (
	// ErrShort reports a read beyond the end of the input.
	ErrShort = errors.New("bitio: input too short")
	// ErrPadding reports a bit that Align skipped although it was not zero.
	ErrPadding = errors.New("bitio: padding is not zero")
)

// Reader reads bits from the slice given to Reset, which it does not modify. The zero value is at
// the end of an empty input. No input makes it panic. After the first error everything reads as
// zero, so a parser may check Err once, before it uses a number as a length.
type Reader struct {
	src []byte // nil after an error
	pos uint   // next bit in src
	err error
}

// Reset clears the error and starts at the first bit of src.
func (r *Reader) Reset(src []byte) {
	*r = Reader{src: src}
}

// ReadBits reads n bits, lowest first. If there are fewer, it returns 0 and sets ErrShort. It
// panics if n is over 64.
func (r *Reader) ReadBits(n uint) uint64 {
	// 8 bytes hold at least 57 bits from any bit of the first.
	if i := r.pos >> 3; n <= 57 && i+8 <= uint(len(r.src)) {
		v := binary.LittleEndian.Uint64(r.src[i:]) >> (r.pos & 7) & (1<<n - 1)
		r.pos += n
		return v
	}
	return r.readSlow(n)
}

// readSlow is ReadBits near the end of the input and for wide integers.
func (r *Reader) readSlow(n uint) uint64 {
	if n > 64 {
		panic("bitio: more than 64 bits in one read")
	}
	left := uint(r.Len())
	if n > left {
		r.fail(ErrShort)
		return 0
	}
	var v uint64
	if last := len(r.src) - 8; left <= 64 && last >= 0 {
		v = binary.LittleEndian.Uint64(r.src[last:]) >> (64 - left) & (1<<n - 1)
		r.pos += n
		return v
	}
	if n > 32 {
		v = r.ReadBits(32)
		return v | r.ReadBits(n-32)<<32
	}
	for got := uint(0); got < n; {
		shift := r.pos & 7
		take := min(8-shift, n-got)
		v |= uint64(r.src[r.pos>>3]>>shift) & (1<<take - 1) << got
		got += take
		r.pos += take
	}
	return v
}

// ReadTruncated reads the engine's truncated integer below limit. If the bits end early, it returns
// 0 and sets ErrShort. With a limit of 0 or 1 it reads nothing and returns 0.
func (r *Reader) ReadTruncated(limit uint32) uint32 {
	if limit <= 1 {
		return 0
	}
	k := truncatedLow(limit)
	v := uint32(r.ReadBits(k))
	if v+1<<k < limit {
		v |= uint32(r.ReadBits(1)) << k
	}
	if r.err != nil {
		return 0
	}
	return v
}

// Align skips to the next byte boundary. A skipped bit that is not zero sets ErrPadding.
func (r *Reader) Align() {
	if r.ReadBits(-r.pos&7) != 0 {
		r.fail(ErrPadding)
	}
}

// Rest returns the bytes after the current position, none after an error. It panics if the position
// is not a byte boundary. The bytes alias the slice given to Reset and stay unread: to continue
// after k of them, call Reset(r.Rest()[k:]).
func (r *Reader) Rest() []byte {
	if r.pos&7 != 0 {
		panic("bitio: Rest between bytes: call Align first")
	}
	return r.src[r.pos>>3 : len(r.src) : len(r.src)]
}

// Len returns the number of bits left, 0 after an error.
func (r *Reader) Len() int {
	return len(r.src)*8 - int(r.pos)
}

// Err returns the first error, ErrShort or ErrPadding, or nil.
func (r *Reader) Err() error {
	return r.err
}

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.src, r.pos = nil, 0
}

// TruncatedBits returns the size of the truncated integer v below limit in bits, 0 to 32. It panics
// unless v < limit.
func TruncatedBits(v, limit uint32) int {
	if v >= limit {
		panic("bitio: truncated integer is not below its limit")
	}
	// The engine writes bits from the lowest on, while value+mask < limit. Let 2^k be the largest
	// power of two up to limit. The condition then holds for the first k bits, and for one more if
	// the low k bits leave room for it below limit.
	k := truncatedLow(limit)
	if v&(1<<k-1)+1<<k < limit {
		k++
	}
	return int(k)
}

// truncatedLow returns the number of bits that every truncated integer below limit has. limit is
// not 0.
func truncatedLow(limit uint32) uint {
	return uint(bits.Len32(limit)) - 1
}
