package rle

import (
	"encoding/binary"
	"math/bits"
)

// AppendEncode appends the shortest code of src to dst and returns the extended slice. The code is
// never longer than n + ceil(n/127) bytes for n bytes of input, and empty for none. Among codes of
// the same length the choice is fixed: the same src always gives the same bytes. It takes time
// linear in len(src) and allocates nothing if dst has room. The free capacity of dst must not
// overlap src.
func AppendEncode(dst, src []byte) []byte {
	for at := 0; at < len(src); {
		seg := nextSegment(src, at)
		if seg.literal > at {
			dst = append(dst, byte(maxRun+seg.literal-at))
			dst = append(dst, src[at:seg.literal]...)
		}
		for i := seg.literal; i < seg.pairs; i += 2 {
			dst = append(dst, 2, src[i])
		}
		for n := seg.end - seg.pairs; n > 0; n -= maxRun {
			dst = append(dst, byte(min(n, maxRun)), src[seg.pairs])
		}
		at = seg.end
	}
	return dst
}

// EncodedLen returns the length of the code that AppendEncode appends for src, without writing it.
func EncodedLen(src []byte) int {
	n := 0
	for at := 0; at < len(src); {
		seg := nextSegment(src, at)
		if seg.literal > at {
			n += 1 + seg.literal - at
		}
		n += seg.pairs - seg.literal
		n += (seg.end - seg.pairs + maxRun - 1) / maxRun * 2
		at = seg.end
	}
	return n
}

// segment is a stretch of src, given by where its three parts end, each possibly empty: a literal,
// runs of two, and equal bytes for as many runs as they take.
type segment struct {
	literal, pairs, end int
}

// nextSegment returns the segment of a shortest code that starts at src[at]. Proof:
//
// Split src into maximal stretches of equal bytes. A stretch of three or more costs two bytes as a
// run. In a literal it would cost its length and could at best save the control byte of a second
// literal, so it is never better there. A stretch of two costs two bytes either way: it joins a
// literal only if that lets one literal reach the next single byte. The single bytes between two
// long stretches are covered by the fewest literals of at most 127 bytes if each literal starts at
// the first byte not covered, and the last one then also reaches furthest.
//
// A stretch of 128k+1 bytes remains. Its odd byte would cost two bytes as a run, but one at the end
// of the literal before. If no such literal is open, or it is full, the odd byte starts the next
// one, at a cost of at most two bytes.
func nextSegment(src []byte, at int) segment {
	literal := at // the literal is src[at:literal]; from there to i are pairs
	for i := at; i < len(src); {
		n := stretch(src[i:])
		switch {
		case n == 1 && i-at >= maxLiteral:
			return segment{literal, i, i}
		case n == 1:
			i = min(i+singles(src[i:]), at+maxLiteral)
			literal = i
		case n == 2 && literal > at:
			i += 2
		case n == 2 || n%maxRun != 1:
			return segment{literal, i, i + n}
		case literal > at && i-at < maxLiteral:
			return segment{i + 1, i + 1, i + n}
		default:
			return segment{literal, i, i + n - 1}
		}
	}
	return segment{literal, len(src), len(src)}
}

// Every byte of a word 0x01, and every byte 0x80.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// singles returns the number of bytes at the start of b, at most 8, that differ from the byte after
// them. The first byte must differ.
func singles(b []byte) int {
	if len(b) < 9 {
		return 1
	}
	diff := binary.LittleEndian.Uint64(b) ^ binary.LittleEndian.Uint64(b[1:])
	// The lowest bit set marks the first zero byte of diff; there may be wrong ones above it.
	return bits.TrailingZeros64((diff-ones)&^diff&highs) / 8
}

// stretch returns the number of bytes at the start of b that equal the first. b is not empty.
func stretch(b []byte) int {
	if len(b) == 1 || b[0] != b[1] {
		return 1
	}
	same := uint64(b[0]) * ones
	n := 2
	for ; n+8 <= len(b); n += 8 {
		if diff := binary.LittleEndian.Uint64(b[n:]) ^ same; diff != 0 {
			return n + bits.TrailingZeros64(diff)/8
		}
	}
	for n < len(b) && b[n] == b[0] {
		n++
	}
	return n
}
