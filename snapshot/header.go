package snapshot

import (
	"encoding/binary"
	"fmt"
)

// The header is 16 bits, low byte first: the distance to the baseline in the low 6, the low 10 of the sequence above.
// Against the initial set the distance is 0 and the sequence's high 6 bits follow in a third byte.
const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16
)

func appendHeader(dst []byte, seq, distance uint64) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(seq<<distanceBits|distance))
	if distance == 0 {
		dst = append(dst, byte(seq>>shortBits&(1<<(longBits-shortBits)-1)))
	}
	return dst
}

// parseHeader gives the sequence nearest to next of those that a payload's header may mean, and what follows it. A
// wrong guess at a short one finds no baseline, since that would have to be as old.
func parseHeader(payload []byte, next uint64) (seq, distance uint64, rest []byte, err error) {
	if len(payload) < 2 {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes, want a header of 2", ErrMalformed, len(payload))
	}
	v := uint64(binary.LittleEndian.Uint16(payload))
	distance, seq, rest = v&(1<<distanceBits-1), v>>distanceBits, payload[2:]
	if distance > 0 {
		return expand(seq, shortBits, next), distance, rest, nil
	}
	if len(rest) == 0 || rest[0]>>(longBits-shortBits) != 0 {
		return 0, 0, nil, fmt.Errorf("%w: want a header of 3 bytes, the last below 64", ErrMalformed)
	}
	return expand(seq|uint64(rest[0])<<shortBits, longBits, next), 0, rest[1:], nil
}

// expand makes a sequence of its low bits: the one nearest to next, and not below 0.
func expand(low uint64, width uint, next uint64) uint64 {
	span := uint64(1) << width
	seq := next&^(span-1) | low
	switch {
	case seq+span/2 <= next:
		seq += span
	case seq >= next+span/2 && seq >= span:
		seq -= span
	}
	return seq
}
