package statesync

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/snapshot"
)

// The header is 16 bits, low byte first: the distance to the newest acked packet in the low 6, the low 10 of the
// sequence above. Where the distance is 0, nothing is referred to, the models start anew, and a byte with the sequence's
// high 6 bits, a byte with the epoch and the tick as a varint follow.
const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16
	// farthest is the largest distance: packets before it are as final at the receiver as at the sender.
	farthest = ring - settled
)

// header is what is read of a packet without decoding it.
type header struct {
	seq      uint64
	distance uint64 // 0: none
	epoch    uint8  // these two only where there is none
	tick     int64
}

func (h *header) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.seq<<distanceBits|h.distance))
	if h.distance == 0 {
		dst = append(dst, byte(h.seq>>shortBits&(1<<(longBits-shortBits)-1)), h.epoch)
		dst = binary.AppendVarint(dst, h.tick)
	}
	return dst
}

// parseHeader gives the header, with the sequence nearest to next of those that it may mean, and what follows it.
func parseHeader(b []byte, next uint64) (h header, rest []byte, err error) {
	if len(b) < 2 || len(b) > MaxPacket {
		return h, nil, fmt.Errorf("%w: packet of %d bytes, want 2 to %d", snapshot.ErrMalformed, len(b), MaxPacket)
	}
	v := uint64(binary.LittleEndian.Uint16(b))
	h.distance, h.seq, b = v&(1<<distanceBits-1), v>>distanceBits, b[2:]
	if h.distance > 0 {
		if h.distance > farthest {
			return h, nil, fmt.Errorf("%w: refers to %d packets before it, want at most %d", snapshot.ErrMalformed, h.distance, farthest)
		}
		h.seq = expand(h.seq, shortBits, next)
		return h, b, nil
	}
	if len(b) < 3 || b[0]>>(longBits-shortBits) != 0 {
		return h, nil, fmt.Errorf("%w: header of a packet that refers to none", snapshot.ErrMalformed)
	}
	h.seq, h.epoch = expand(h.seq|uint64(b[0])<<shortBits, longBits, next), b[1]
	tick, n := binary.Varint(b[2:])
	if n <= 0 || n > 1 && b[1+n] == 0 || fixed.Abs(tick) > maxTick {
		return h, nil, fmt.Errorf("%w: tick of a header", snapshot.ErrMalformed)
	}
	h.tick = tick
	return h, b[2+n:], nil
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
