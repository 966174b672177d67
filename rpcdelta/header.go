package rpcdelta

import "encoding/binary"

// Limits that the headers set.
const (
	// MaxRPC is the highest number of an RPC.
	MaxRPC = 255
	// MaxRing is the largest capacity of a ring of frames.
	MaxRing = 256

	maxShortRPC      = 7
	maxShortDistance = 32
	shortSeqBits     = 7
	// maxShortUnacked keeps a short sequence unambiguous: the decoder has
	// processed at least what it acked.
	maxShortUnacked = 60
	maxLongLate     = 1023

	shortHeader = 2
	longHeader  = 5
	hashSize    = 2
)

// header is what stands ahead of the coded part, readable without it.
//
//	short, 16 bits, low bit first:
//	  0, RPC number (3), distance to the baseline - 1 (5), sequence (7)
//	long, 5 bytes:
//	  flags (bit 0 set, bit 1 clear, bit 2: has a baseline, bit 3: a hash follows),
//	  RPC number, sequence (2, low byte first), distance to the baseline or epoch,
//	  and if the flag says so the hash of the baseline (2, low byte first)
type header struct {
	rpc      uint8
	long     bool
	seq      uint16 // low bits: 7 in a short header, 16 in a long one
	distance int    // to the baseline; 0: there is none
	epoch    uint8  // of a frame without baseline
	checked  bool
	hash     uint16
}

const (
	flagLong     = 1 << 0
	flagControl  = 1 << 1 // no frame: see ControlMask
	flagBaseline = 1 << 2
	flagHash     = 1 << 3
	flagMask     = flagLong | flagControl | flagBaseline | flagHash
)

// ControlMask marks a message that is no frame: one whose first byte has both
// bits set. The other six are free for whoever carries frames and messages of
// his own in one stream.
const ControlMask = flagLong | flagControl

func (h *header) append(dst []byte) []byte {
	if !h.long {
		v := uint16(h.rpc)<<1 | uint16(h.distance-1)<<4 | h.seq<<9
		return binary.LittleEndian.AppendUint16(dst, v)
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

// check has the header carry the hash of its baseline.
func (h *header) check(hash uint16) { h.long, h.checked, h.hash = true, true, hash }

// size is the header's length in bytes.
func (h *header) size() int {
	switch {
	case !h.long:
		return shortHeader
	case h.checked:
		return longHeader + hashSize
	}
	return longHeader
}

// parseHeader reads a header and gives the coded part behind it.
func parseHeader(b []byte) (h header, coded []byte, err error) {
	if len(b) < shortHeader {
		return h, nil, malformed("%d bytes are no header", len(b))
	}
	if b[0]&flagLong == 0 {
		v := binary.LittleEndian.Uint16(b)
		h = header{rpc: uint8(v >> 1 & maxShortRPC), distance: int(v>>4&31) + 1, seq: v >> 9}
		return h, b[shortHeader:], nil
	}
	if b[0]&flagControl != 0 || b[0]&^flagMask != 0 || len(b) < longHeader {
		return h, nil, malformed("no header of a frame")
	}
	h = header{long: true, rpc: b[1], seq: binary.LittleEndian.Uint16(b[2:])}
	if h.checked = b[0]&flagHash != 0; h.checked {
		if b[0]&flagBaseline == 0 || len(b) < longHeader+hashSize {
			return h, nil, malformed("no hash of a baseline")
		}
		h.hash = binary.LittleEndian.Uint16(b[longHeader:])
		coded = b[longHeader+hashSize:]
	} else {
		coded = b[longHeader:]
	}
	if b[0]&flagBaseline == 0 {
		if h.epoch = b[4]; h.epoch > epochMask {
			return h, nil, malformed("epoch %d", h.epoch)
		}
		return h, coded, nil
	}
	if h.distance = int(b[4]); h.distance == 0 {
		return h, nil, malformed("a frame is no baseline of itself")
	}
	return h, coded, nil
}

// unwrap gives the 64-bit sequence by the newest one that was taken, or false for
// one before the first. A long header may be behind by no more than maxLongLate,
// so that it may be ahead by nearly a whole turn: what was sent before an outage
// is gone, what comes after it must not be mistaken for late.
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

// PeekRPC gives the number of the RPC that a payload belongs to, without
// decoding it.
func PeekRPC(payload []byte) (int, error) {
	h, _, err := parseHeader(payload)
	return int(h.rpc), err
}
