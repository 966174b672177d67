package statesync

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// A header is 16 bits, low byte first: the distance to the newest acked packet in the 6 low bits,
// above them the 10 low bits of the sequence number. A packet with distance 0 is a keyframe: it has
// no baselines, and the models start from the beginning. A byte with the 6 high bits of a 16-bit
// sequence number follows, a byte with the epoch, and the tick as a signed varint.
const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16
	// maxDistance is the maximum distance: up to this distance, both ends agree which packets
	// before the acked one were lost.
	maxDistance = ring - reorderLimit
)

// header is the part of a packet that can be parsed without the state of the stream.
type header struct {
	seq      uint64
	distance uint64 // distance to the newest acked packet; 0 for a keyframe
	epoch    uint8  // epoch of a keyframe
	tick     int64  // tick of a keyframe
}

func (h *header) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.seq<<distanceBits|h.distance))
	if h.distance == 0 {
		dst = append(dst, byte(h.seq>>shortBits&(1<<(longBits-shortBits)-1)), h.epoch)
		dst = binary.AppendVarint(dst, h.tick)
	}
	return dst
}

// parseHeader parses a header and returns the coded part. next is the expected sequence number. The
// result is the number nearest to next with the low bits in the header.
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
	if n <= 0 || n > 1 && b[1+n] == 0 || !validTick(tick) {
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
	// Epoch is the epoch of the newest packet.
	Epoch uint8
	// Newest is the low bits of the newest sequence number: 10 in the short form of an ack, 16 in
	// the long form, which is used after a recent start, for a reset and from epoch 8 on.
	Newest uint16
	// Bit i of Window is set if packet Newest-1-i was decoded, for i < 63.
	Window uint64
}

const (
	ackWindow = ring - 1 // bits of the window
	askReset  = 1        // request code of Ack.Reset
)

func (a *Ack) wire() seq.Ack {
	w := seq.Ack{None: a.None}
	if a.Reset {
		w.Reset = askReset
	}
	if !a.None {
		w.Epoch = a.Epoch
		w.SetWindow(a.Window, ackWindow)
		w.Newest = a.Newest & uint16(seq.Mask(uint64(w.Width())))
	}
	return w
}

// Append appends the ack and returns the extended slice. It has 2 or 3 bytes if nothing was lost,
// and at most 15.
func (a *Ack) Append(dst []byte) []byte {
	w := a.wire()
	return w.Append(dst)
}

// ParseAck parses the ack at the start of b and returns the bytes that follow it. It accepts only
// the output of Append; an error wraps [snapshot.ErrMalformed].
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	w, rest, ok := seq.ParseAck(b)
	if ok {
		a = Ack{None: w.None, Reset: w.Reset == askReset, Epoch: w.Epoch, Newest: w.Newest, Window: w.FullWindow(ackWindow)}
	}
	if !ok || a.wire() != w {
		return Ack{}, nil, fmt.Errorf("%w: ack", snapshot.ErrMalformed)
	}
	return a, rest, nil
}
