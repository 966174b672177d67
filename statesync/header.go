package statesync

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/fixed"
	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/snapshot"
)

// A header is 16 bits, low byte first: the distance to the newest acked packet in the 6 low bits,
// above them the 10 low bits of the sequence number. A packet with distance 0 is a keyframe: it has
// no baselines, and the models start from the beginning. A byte with the 6 high bits of a 16-bit
// sequence number follows, a byte with the epoch, and the tick as a signed varint.
const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16
	// maxDistance is the maximum distance: the receiver knows as well as the sender which packets
	// before it were lost.
	maxDistance = ring - reorderLimit
)

// header is the part of a packet that can be parsed without the state of the stream.
type header struct {
	seq      uint64
	distance uint64 // 0: keyframe
	epoch    uint8  // of a keyframe
	tick     int64  // of a keyframe
}

func (h *header) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.seq<<distanceBits|h.distance))
	if h.distance == 0 {
		dst = append(dst, byte(h.seq>>shortBits&(1<<(longBits-shortBits)-1)), h.epoch)
		dst = binary.AppendVarint(dst, h.tick)
	}
	return dst
}

// parseHeader parses a header and returns the coded part. next is the expected sequence number; of
// the numbers with the low bits in the header, the nearest one is meant.
func parseHeader(b []byte, next uint64) (h header, rest []byte, err error) {
	if len(b) < 2 || len(b) > MaxPacket {
		return h, nil, fmt.Errorf("%w: packet of %d bytes, want 2 to %d", snapshot.ErrMalformed, len(b), MaxPacket)
	}
	v := uint64(binary.LittleEndian.Uint16(b))
	h.distance, h.seq, b = v&(1<<distanceBits-1), v>>distanceBits, b[2:]
	if h.distance > 0 {
		if h.distance > maxDistance {
			return h, nil, fmt.Errorf("%w: distance %d, want at most %d", snapshot.ErrMalformed, h.distance, maxDistance)
		}
		h.seq = seq.Nearest(h.seq, shortBits, next)
		return h, b, nil
	}
	if len(b) < 3 || b[0]>>(longBits-shortBits) != 0 {
		return h, nil, fmt.Errorf("%w: header of a keyframe", snapshot.ErrMalformed)
	}
	h.seq, h.epoch = seq.Nearest(h.seq|uint64(b[0])<<shortBits, longBits, next), b[1]
	tick, n := binary.Varint(b[2:])
	if n <= 0 || n > 1 && b[1+n] == 0 || fixed.Abs(tick) > maxTick {
		return h, nil, fmt.Errorf("%w: tick of a header", snapshot.ErrMalformed)
	}
	h.tick = tick
	return h, b[2+n:], nil
}

// Ack reports which packets a receiver decoded. Acks may be lost, duplicated and reordered.
type Ack struct {
	// None reports that no packet was decoded. All fields but Reset are 0 in this case.
	None bool
	// Reset requests a restart of the sender.
	Reset bool
	// Epoch is that of the newest packet.
	Epoch uint8
	// Newest is the low 16 bits of the newest sequence number.
	Newest uint16
	// Bit i of Window is set if packet Newest-1-i was decoded, for i < 63.
	Window uint64
}

// An ack begins with a byte of flags. Unless the ack is empty, the epoch follows, the newest
// sequence number (2 bytes, low byte first), and the n low bytes of the window's complement, where
// n is in the high bits of the flags.
const (
	ackNone = 1 << iota
	ackReset
	ackSize = 2 // shift of n in the flags

	ackWindow = ring - 1 // bits of the window
)

// Append appends the ack and returns the extended slice. An ack with None set has 1 byte. Others
// have 4 bytes, and as many bytes for the window as reach to the oldest missing packet: at most 12
// bytes in total.
func (a *Ack) Append(dst []byte) []byte {
	flags := byte(0)
	if a.Reset {
		flags |= ackReset
	}
	if a.None {
		return append(dst, flags|ackNone)
	}
	missing := ^a.Window & seq.Mask(ackWindow)
	n := seq.ByteLen(missing)
	dst = append(dst, flags|byte(n)<<ackSize, a.Epoch)
	dst = binary.LittleEndian.AppendUint16(dst, a.Newest)
	return seq.AppendBits(dst, missing, n)
}

// ParseAck parses the ack at the start of b and returns the bytes that follow it. It accepts only
// what Append writes; an error wraps [snapshot.ErrMalformed].
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	if len(b) == 0 {
		return a, nil, fmt.Errorf("%w: ack of 0 bytes", snapshot.ErrMalformed)
	}
	flags, n := b[0], int(b[0]>>ackSize)
	a.None, a.Reset = flags&ackNone != 0, flags&ackReset != 0
	switch {
	case n > 8 || a.None && n > 0:
		return Ack{}, nil, fmt.Errorf("%w: flags %#x of an ack", snapshot.ErrMalformed, flags)
	case a.None:
		return a, b[1:], nil
	case len(b) < 4+n:
		return Ack{}, nil, fmt.Errorf("%w: ack of %d bytes, want %d", snapshot.ErrMalformed, len(b), 4+n)
	}
	a.Epoch, a.Newest = b[1], binary.LittleEndian.Uint16(b[2:])
	missing, rest, _ := seq.ParseBits(b[4:], n)
	if seq.ByteLen(missing) != n || missing&^seq.Mask(ackWindow) != 0 {
		return Ack{}, nil, fmt.Errorf("%w: window of an ack", snapshot.ErrMalformed)
	}
	a.Window = ^missing & seq.Mask(ackWindow)
	return a, rest, nil
}
