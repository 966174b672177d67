package seq

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Ack is an ack of a stream of messages: the newest received message, and a window of earlier ones.
// It is the common format of the acks of all codecs.
type Ack struct {
	// Stream is the number of the stream, 0 if the codec needs none.
	Stream uint8
	Epoch  uint8
	// None reports that nothing was received yet. Newest, Len and Window are 0 in this case.
	None bool
	// Reset is the codec's code of a request, 0 to 3; 0 means none.
	Reset uint8
	// Whole reports that nothing older than the window was received.
	Whole bool
	// Newest is the low bits of the newest number. Their count is Width.
	Newest uint16
	// Bit i of Window is set if message Newest-1-i was received, for i < Len. Len is at most 63.
	Window uint64
	Len    int
}

// MaxAck is the maximum size of an ack in bytes.
const MaxAck = 15

// The first and the last bit of an ack's first byte determine its form. If stream and epoch are 0
// and no message of a window of up to 15 is missing, the shortest form has 16 bits, low bit first:
// 1; Len (4); the 2 high ones of the 10 low bits of Newest; 1; the 8 others. The short form has 24
// bits, low bit first: 0; the stream (3); the epoch (3); whether messages of the window are missing
// (1); Len (6); the low bits of Newest (10). The long form begins with a byte: 1; Reset (2); None
// (1); Whole (1); whether messages of the window are missing (1); whether a byte with the stream
// and one with the epoch follow (1), otherwise both are 0; 0. Unless None is set, Newest (16 bits)
// and a byte with Len follow.
//
// If messages are missing, a byte follows. Its 3 high bits are the length of the only gap, less
// 1, and the 5 low bits its index. If they are 7, the 5 low bits are those of the window, and the
// rest of the window follows in whole bytes.
const (
	shortBits    = 10 // of Newest
	longBits     = 16
	shortMax     = 7 // maximum stream and epoch
	maxLen       = 63
	shortMissing = 1 << 7
	shortestLen  = 15

	ackLong    = 1 << 0
	ackNone    = 1 << 3
	ackWhole   = 1 << 4
	ackMissing = 1 << 5
	ackNumbers = 1 << 6
	ackShort   = 1 << 7 // with ackLong: the shortest form

	gapIndexBits = 5
	gapRaw       = 7
)

// Width returns the number of low bits of the newest number that the ack contains, 10 or 16.
func (a *Ack) Width() uint {
	if a.long() {
		return longBits
	}
	return shortBits
}

// Recent returns the low 16 bits of the newest number of an ack of which at least the low bits of
// the short form are known, if last is the last number that was sent.
func Recent(newest, last uint16) uint16 { return last - (last-newest)&uint16(Mask(shortBits)) }

func (a *Ack) long() bool {
	return a.None || a.Whole || a.Len == maxLen || a.Reset != 0 || a.Stream > shortMax || a.Epoch > shortMax
}

func (a *Ack) shortest() bool {
	return !a.long() && a.Stream|a.Epoch == 0 && a.Len <= shortestLen && a.Window == Mask(uint64(a.Len))
}

// Behind returns the distance from the ack's newest message to message newest, modulo 2^Width.
func (a *Ack) Behind(newest uint64) uint64 {
	return (newest - uint64(a.Newest)) & Mask(uint64(a.Width()))
}

// SetWindow sets the window to the size low bits of w, 1 to 64. It is cut after the oldest bit that
// differs from the rest, so that acks are short where nothing or everything older was received.
func (a *Ack) SetWindow(w uint64, size int) {
	if a.Whole = w>>(size-1)&1 == 0; a.Whole {
		a.Len = bits.Len64(w & Mask(uint64(size)))
	} else {
		a.Len = bits.Len64(^w & Mask(uint64(size)))
	}
	a.Window = w & Mask(uint64(a.Len))
}

// FullWindow returns the size low bits of the window that SetWindow cut.
func (a *Ack) FullWindow(size int) uint64 {
	if a.Whole || a.None {
		return a.Window & Mask(uint64(size))
	}
	return (a.Window | ^Mask(uint64(a.Len))) & Mask(uint64(size))
}

// Append appends the ack and returns the extended slice. It has 3 bytes if nothing is missing from
// the window, which is shorter than 63, no reset is requested, Whole is not set, and stream and
// epoch are at most 7; 2 if these are 0 and the window is shorter than 16. One gap of up to 7
// messages, the newest of them among the 32 newest of the window, costs a byte more than 3.
func (a *Ack) Append(dst []byte) []byte {
	missing := ^a.Window & Mask(uint64(a.Len))
	switch {
	case a.shortest():
		return append(dst, ackLong|ackShort|byte(a.Len)<<1|byte(a.Newest>>8)<<5, byte(a.Newest))
	case !a.long():
		v := uint32(a.Stream)<<1 | uint32(a.Epoch)<<4 | uint32(a.Len)<<8 | uint32(a.Newest)<<14
		if missing != 0 {
			v |= shortMissing
		}
		return a.appendGaps(append(dst, byte(v), byte(v>>8), byte(v>>16)), missing)
	}
	flags := ackLong | a.Reset<<1
	if a.None {
		flags, missing = flags|ackNone, 0
	}
	if a.Whole {
		flags |= ackWhole
	}
	if missing != 0 {
		flags |= ackMissing
	}
	if a.Stream|a.Epoch != 0 {
		dst = append(dst, flags|ackNumbers, a.Stream, a.Epoch)
	} else {
		dst = append(dst, flags)
	}
	if a.None {
		return dst
	}
	dst = binary.LittleEndian.AppendUint16(dst, a.Newest)
	return a.appendGaps(append(dst, byte(a.Len)), missing)
}

func (a *Ack) appendGaps(dst []byte, missing uint64) []byte {
	if missing == 0 {
		return dst
	}
	index, size := bits.TrailingZeros64(missing), bits.OnesCount64(missing)
	if size <= gapRaw && index < 1<<gapIndexBits && missing>>index == Mask(uint64(size)) {
		return append(dst, byte(size-1)<<gapIndexBits|byte(index))
	}
	dst = append(dst, gapRaw<<gapIndexBits|byte(a.Window&Mask(gapIndexBits)))
	return AppendBits(dst, a.Window>>gapIndexBits, rawBytes(a.Len))
}

// rawBytes returns the number of bytes that follow the first one of a raw window.
func rawBytes(size int) int { return (max(size, gapIndexBits) - gapIndexBits + 7) / 8 }

// ParseAck parses the ack at the start of b and returns the bytes that follow it. It reports false
// unless Append appends the same bytes.
func ParseAck(b []byte) (a Ack, rest []byte, ok bool) {
	if len(b) == 0 {
		return Ack{}, nil, false
	}
	var missing bool
	switch {
	case b[0]&(ackLong|ackShort) == ackLong|ackShort:
		if len(b) < 2 {
			return Ack{}, nil, false
		}
		a = Ack{Len: int(b[0] >> 1 & shortestLen), Newest: uint16(b[0]>>5&3)<<8 | uint16(b[1])}
		rest = b[2:]
	case b[0]&ackLong == 0:
		if len(b) < 3 {
			return Ack{}, nil, false
		}
		v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		a = Ack{Stream: uint8(v >> 1 & shortMax), Epoch: uint8(v >> 4 & shortMax), Len: int(v >> 8 & 63), Newest: uint16(v >> 14)}
		missing, rest = v&shortMissing != 0, b[3:]
	default:
		if a, rest, ok = parseLong(b); !ok {
			return Ack{}, nil, false
		}
		missing = b[0]&ackMissing != 0
	}
	a.Window = Mask(uint64(a.Len))
	if missing {
		if rest, ok = a.parseGaps(rest); !ok {
			return Ack{}, nil, false
		}
	}
	var again [MaxAck]byte
	if !bytes.Equal(a.Append(again[:0]), b[:len(b)-len(rest)]) {
		return Ack{}, nil, false
	}
	return a, rest, true
}

func parseLong(b []byte) (a Ack, rest []byte, ok bool) {
	flags := b[0]
	a.Reset, a.None, a.Whole = flags>>1&3, flags&ackNone != 0, flags&ackWhole != 0
	rest = b[1:]
	if flags&ackNumbers != 0 {
		if len(rest) < 2 {
			return Ack{}, nil, false
		}
		a.Stream, a.Epoch, rest = rest[0], rest[1], rest[2:]
	}
	if a.None && (flags&ackMissing != 0 || a.Whole) {
		return Ack{}, nil, false
	}
	if a.None {
		return a, rest, true
	}
	if len(rest) < 3 || rest[2] > maxLen {
		return Ack{}, nil, false
	}
	a.Newest, a.Len = binary.LittleEndian.Uint16(rest), int(rest[2])
	return a, rest[3:], true
}

// parseGaps parses the output of appendGaps. Window has Len ones before.
func (a *Ack) parseGaps(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	size, index := uint64(b[0]>>gapIndexBits)+1, uint64(b[0])&Mask(gapIndexBits)
	if size <= gapRaw {
		a.Window &^= Mask(size) << index
		return b[1:], true
	}
	high, rest, ok := ParseBits(b[1:], rawBytes(a.Len))
	w := index | high<<gapIndexBits
	if !ok || w&^a.Window != 0 || high>>(64-gapIndexBits) != 0 {
		return nil, false
	}
	a.Window = w
	return rest, true
}
