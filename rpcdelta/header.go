package rpcdelta

import "encoding/binary"

// Limits of the header format.
const (
	// MaxRPC is the highest number of an RPC.
	MaxRPC = 255
	// MaxRing is the maximum capacity of a ring of frames.
	MaxRing = 256

	maxShortRPC     = 10
	maxShortHashRPC = 3
	shortSeqBits    = 7
	// maxShortDistance keeps a short sequence unambiguous, because the decoder has accepted the
	// baseline or a newer frame.
	maxShortDistance = 32
	maxLongLate      = 1023

	shortHeader = 3 // maximum size of a short header without a hash, in bytes
	longHeader  = 5
	hashSize    = 2
)

// header precedes the coded part of a payload. It can be parsed without the state of the stream.
//
//	short, 14, 16 or 19 bits, each byte from its high bit down:
//	  0; RPC number: 0 as 0, 1 to 3 as 1 and 2 bits, 4 to 10 as 100 and 3 bits less 4;
//	  distance to the baseline - 1 (5), sequence (7)
//	short with the hash of the baseline, 36 or 38 bits, RPC number up to 3:
//	  0, 100111, then as above from the RPC number on, hash (16)
//	long, 5 bytes:
//	  flags (bit 7 set, bit 6 clear, bit 5: has a baseline, bit 4: a hash follows),
//	  RPC number, sequence (2, low byte first), distance to the baseline or epoch,
//	  and if the flag says so the hash of the baseline (2, low byte first)
//
// The coded part may begin at the next bit; see [header.free].
type header struct {
	rpc      uint8
	long     bool
	seq      uint16 // low bits: 7 in a short header, 16 in a long one
	distance int    // to the baseline; 0 without one
	epoch    uint8  // of a frame without baseline
	checked  bool
	hash     uint16
}

const (
	flagLong     = 1 << 7
	flagControl  = 1 << 6 // not a frame, see ControlMask
	flagBaseline = 1 << 5
	flagHash     = 1 << 4
	flagMask     = flagLong | flagControl | flagBaseline | flagHash
)

// ControlMask marks a message that is not a frame: both bits of its first byte are set. The other
// six bits are free for messages that share a channel with frames.
const ControlMask = flagLong | flagControl

// append appends the header in whole bytes. Bits of the last byte that it does not use are 0.
func (h *header) append(dst []byte) []byte {
	if !h.long {
		return h.appendShort(dst)
	}
	flags, last := byte(flagLong), h.epoch
	if h.distance != 0 {
		flags, last = flags|flagBaseline, byte(h.distance)
	}
	if h.checked {
		flags |= flagHash
	}
	dst = append(dst, flags, h.rpc, byte(h.seq), byte(h.seq>>8), last)
	if h.checked {
		dst = binary.LittleEndian.AppendUint16(dst, h.hash)
	}
	return dst
}

// hashCode announces a hash. It follows the first bit of a short header, in place of an RPC number.
const (
	hashCode     = 0b100_111
	hashCodeBits = 6
)

func (h *header) appendShort(dst []byte) []byte {
	var v uint64
	if h.checked {
		v = hashCode
	}
	switch n := h.rpcBits(); n {
	case 1:
		v <<= 1
	case 3:
		v = v<<3 | 4 | uint64(h.rpc)
	default:
		v = 4<<3 | uint64(h.rpc-4)
	}
	v = v<<5 | uint64(h.distance-1)
	v = v<<shortSeqBits | uint64(h.seq)&(1<<shortSeqBits-1)
	if h.checked {
		v = v<<16 | uint64(h.hash)
	}
	v <<= 64 - h.bits()
	for range h.size() {
		dst = append(dst, byte(v>>56))
		v <<= 8
	}
	return dst
}

// rpcBits returns the length of the RPC number in a short header.
func (h *header) rpcBits() int {
	switch {
	case h.rpc == 0:
		return 1
	case h.rpc < 4:
		return 3
	}
	return 6
}

// check adds the hash of the baseline to the header.
func (h *header) check(hash uint16) {
	h.long, h.checked, h.hash = h.long || h.rpc > maxShortHashRPC, true, hash
}

// bits returns the length of the header in bits.
func (h *header) bits() int {
	n := 8 * longHeader
	if !h.long {
		n = 1 + h.rpcBits() + 5 + shortSeqBits
	}
	if h.checked {
		n += 8 * hashSize
		if !h.long {
			n += hashCodeBits
		}
	}
	return n
}

// size returns the number of bytes that the header occupies, the last one perhaps in part.
func (h *header) size() int { return (h.bits() + 7) / 8 }

// uncheckedSize returns the size of the header without a hash.
func (h *header) uncheckedSize() int {
	u := *h
	u.checked = false
	if h.checked && h.rpc > maxShortHashRPC {
		u.long = h.rpc > maxShortRPC || h.distance > maxShortDistance
	}
	return u.size()
}

// free returns the number of low bits of the last byte that the header leaves to the coded part.
func (h *header) free() uint { return uint(8*h.size() - h.bits()) }

// parseHeader parses a header. It ignores the bits of the last byte that belong to the coded part.
func parseHeader(b []byte) (h header, err error) {
	if len(b) == 0 {
		return h, malformed("no header")
	}
	if b[0]&flagLong == 0 {
		return parseShort(b)
	}
	if b[0]&flagControl != 0 || b[0]&^flagMask != 0 || len(b) < longHeader {
		return h, malformed("no header of a frame")
	}
	h = header{long: true, rpc: b[1], seq: binary.LittleEndian.Uint16(b[2:])}
	if h.checked = b[0]&flagHash != 0; h.checked {
		if b[0]&flagBaseline == 0 || len(b) < longHeader+hashSize {
			return h, malformed("no hash of a baseline")
		}
		h.hash = binary.LittleEndian.Uint16(b[longHeader:])
	}
	if b[0]&flagBaseline == 0 {
		if h.epoch = b[4]; h.epoch > epochMask {
			return h, malformed("epoch %d", h.epoch)
		}
		return h, nil
	}
	if h.distance = int(b[4]); h.distance == 0 {
		return h, malformed("a frame is no baseline of itself")
	}
	return h, nil
}

// parseShort parses a short header. It reads up to 8 bytes, high bit first.
func parseShort(b []byte) (h header, err error) {
	var v uint64
	for i := range min(8, len(b)) {
		v |= uint64(b[i]) << (56 - 8*i)
	}
	v <<= 1
	if v>>(64-hashCodeBits) == hashCode {
		h.checked = true
		v <<= hashCodeBits
	}
	switch rpc := uint8(v >> 61); {
	case rpc > 4:
		h.rpc = rpc & 3
	case rpc == 4:
		h.rpc = uint8(v>>58)&7 + 4
	}
	v <<= h.rpcBits()
	h.distance, h.seq = int(v>>59)+1, uint16(v<<5>>(64-shortSeqBits))
	if h.checked {
		h.hash = uint16(v << (5 + shortSeqBits) >> 48)
	}
	if len(b) < h.size() || h.rpc > maxShortRPC || h.checked && h.rpc > maxShortHashRPC {
		return h, malformed("%d bytes are no header", len(b))
	}
	return h, nil
}

// unwrap returns the 64-bit sequence of the header, given the newest accepted one, and reports
// false if it were negative. A long header may be behind by at most maxLongLate and ahead by nearly
// 2^16: payloads before an outage were lost, and those after it must not be mistaken for late ones.
func (h *header) unwrap(newest uint64) (n uint64, ok bool) {
	turn, late := uint64(1)<<16, uint64(maxLongLate)
	if !h.long {
		turn, late = 1<<shortSeqBits, 1<<(shortSeqBits-1)-1
	}
	behind := (newest - uint64(h.seq)) & (turn - 1)
	if behind > late {
		return newest + turn - behind, true
	}
	return newest - behind, behind <= newest
}

// PeekRPC returns the number of the RPC that a payload belongs to, without decoding it.
func PeekRPC(payload []byte) (int, error) {
	if len(payload) >= shortHeader { // most are short, of the first RPCs, and have no hash
		switch first := payload[0]; {
		case first < 0b0_100_0000:
			return 0, nil
		case first >= 0b0_101_0000 && first < flagLong:
			return int(first>>4) & 3, nil
		}
	}
	h, err := parseHeader(payload)
	return int(h.rpc), err
}
