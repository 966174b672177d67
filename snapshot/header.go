package snapshot

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
)

// A header is 16 bits, low byte first: the distance to the baseline in the low 6, the low 10 of the sequence above.
//
//   - Distance 63 stands for a header with a hash: a byte with the distance follows, and the hash.
//   - Distance 0 says that the baseline is the initial set, or nothing at all. Then follows a byte with the high 6 bits
//     of the sequence, a bit for nothing, and one for a hash; the epoch; and the hash, if there is one.
type header struct {
	seq      uint16 // the low 10 bits of it, but against the initial set
	distance uint64 // 0: the initial set, or nothing
	nothing  bool
	epoch    uint8
	checked  bool
	hash     uint16
}

const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16

	withHash = 1<<distanceBits - 1 // the distance that says so

	flagNothing = 1 << 6
	flagHash    = 1 << 7
)

func (h *header) append(dst []byte) []byte {
	distance := h.distance
	if h.checked && distance > 0 {
		distance = withHash
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(uint64(h.seq)<<distanceBits|distance))
	switch distance {
	case 0:
		b := byte(h.seq >> shortBits)
		if h.nothing {
			b |= flagNothing
		}
		if h.checked {
			b |= flagHash
		}
		dst = append(dst, b, h.epoch)
	case withHash:
		dst = append(dst, byte(h.distance))
	}
	if h.checked {
		dst = binary.LittleEndian.AppendUint16(dst, h.hash)
	}
	return dst
}

// parseHeader reads a header and gives what follows it.
func parseHeader(b []byte) (h header, rest []byte, err error) {
	if len(b) < 2 {
		return h, nil, short(b)
	}
	v := binary.LittleEndian.Uint16(b)
	h.distance, h.seq, rest = uint64(v&(1<<distanceBits-1)), v>>distanceBits, b[2:]
	switch h.distance {
	case 0:
		if len(rest) < 2 {
			return h, nil, short(b)
		}
		h.seq |= uint16(rest[0]) << shortBits
		h.nothing, h.checked, h.epoch = rest[0]&flagNothing != 0, rest[0]&flagHash != 0, rest[1]
		rest = rest[2:]
	case withHash:
		if len(rest) < 1 {
			return h, nil, short(b)
		}
		h.distance, h.checked, rest = uint64(rest[0]), true, rest[1:]
		if h.distance == 0 || h.distance >= withHash {
			return h, nil, fmt.Errorf("%w: distance %d to the baseline, want 1 to %d", ErrMalformed, h.distance, withHash-1)
		}
	}
	if !h.checked {
		return h, rest, nil
	}
	if len(rest) < 2 {
		return h, nil, short(b)
	}
	h.hash = binary.LittleEndian.Uint16(rest)
	return h, rest[2:], nil
}

func short(b []byte) error {
	return fmt.Errorf("%w: %d bytes are no header", malformed.ErrTruncated, len(b))
}

// unwrap gives the whole sequence by the newest one that was decoded, plus one. One of 10 bits is the nearest: a wrong
// guess finds no baseline, since that would have to be as old. One of 16 bits is at most Ring behind, so that it may be
// nearly a whole turn ahead, after an outage.
func (h *header) unwrap(next uint64) uint64 {
	if h.distance > 0 {
		const turn = 1 << shortBits
		return nearest(uint64(h.seq)&(turn-1), turn, turn/2, next)
	}
	return nearest(uint64(h.seq), 1<<longBits, 4*Ring, next)
}

// nearest is the number of the given low bits that is at most so far below next, and not below 0.
func nearest(low, turn, below, next uint64) uint64 {
	behind := (next - low) & (turn - 1)
	if behind > below || behind > next {
		return next + turn - behind
	}
	return next - behind
}
