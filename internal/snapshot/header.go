package snapshot

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/seq"
)

// A header is 16 bits, low byte first: the distance to the baseline in the 6 low bits, above them
// the 10 low bits of the sequence number.
//
//   - Distance 63 marks a header with a hash: the distance follows in a byte, then the hash.
//   - Distance 0 means that the baseline is the initial set or an empty set. A byte follows with
//     the 6 high bits of a 16-bit sequence number, a bit for the empty set, and a bit for a hash;
//     then the hash, if there is one.
type header struct {
	seq      uint16 // low bits of the sequence number: 10, or 16 if distance is 0
	distance uint64 // distance to the baseline; 0 for the initial set or an empty set
	empty    bool
	checked  bool
	hash     uint16
}

const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16

	withHash = 1<<distanceBits - 1 // distance that marks a header with a hash

	flagEmpty = 1 << 6
	flagHash  = 1 << 7
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
		if h.empty {
			b |= flagEmpty
		}
		if h.checked {
			b |= flagHash
		}
		dst = append(dst, b)
	case withHash:
		dst = append(dst, byte(h.distance))
	}
	if h.checked {
		dst = binary.LittleEndian.AppendUint16(dst, h.hash)
	}
	return dst
}

// parseHeader parses a header and returns the coded part that follows it.
func parseHeader(b []byte) (h header, rest []byte, err error) {
	var r bitio.Reader
	r.Reset(b)
	h.distance, h.seq = r.ReadBits(distanceBits), uint16(r.ReadBits(shortBits))
	switch h.distance {
	case 0:
		h.seq |= uint16(r.ReadBits(longBits-shortBits)) << shortBits
		h.empty, h.checked = r.ReadBits(1) != 0, r.ReadBits(1) != 0
	case withHash:
		h.distance, h.checked = r.ReadBits(8), true
		if r.Err() == nil && (h.distance == 0 || h.distance > maxDistance) {
			return h, nil, fmt.Errorf("%w: distance %d to the baseline, want 1 to %d", ErrMalformed, h.distance, maxDistance)
		}
	}
	if h.checked {
		h.hash = uint16(r.ReadBits(16))
	}
	if r.Err() != nil {
		return h, nil, fmt.Errorf("%w: header", malformed.ErrTruncated)
	}
	return h, r.Rest(), nil
}

// unwrap returns the 64-bit sequence number, given the successor of the newest decoded one. Ten
// bits mean the nearest number: if another was meant, the baseline is too old to be found. Sixteen
// bits are used for payloads without a stored baseline. After an outage, their number may be nearly
// 2^16 ahead of next.
func (h *header) unwrap(next uint64) uint64 {
	if h.distance > 0 {
		return seq.Nearest(uint64(h.seq)&(1<<shortBits-1), shortBits, next)
	}
	return seq.Unwrap(uint64(h.seq), longBits, next, 4*Ring)
}
