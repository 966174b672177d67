// Package wire is the header of payloads, which can be parsed without the state of a stream.
// docs/spec/frames.md specifies it.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/seq"
)

// ErrMalformed reports bytes that no encoder of the schema writes.
var ErrMalformed = errors.New("rpcdelta: malformed")

// Malformed returns an error that wraps [ErrMalformed] and describes the problem.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// Limits of the header format.
const (
	// MaxRPC is the highest number of an RPC.
	MaxRPC = 255
	// MaxRing is the maximum capacity of a ring of frames.
	MaxRing = 256
	// EpochMask is the highest epoch; the epoch after it is 0.
	EpochMask = 7
	// EpochSpan is the maximum distance at which a newer epoch is distinguished from an older one.
	EpochSpan = 4
	// MaxHeader is the maximum size of a header in bytes, LongHeader the size of a long header
	// without a hash.
	MaxHeader  = LongHeader + hashSize
	LongHeader = 5

	hashSize        = 2
	maxShortRPC     = 10
	maxShortHashRPC = 3
	maxShortHeader  = 3 // bytes, without a hash
	// maxShortDistance keeps a short sequence unambiguous, because the decoder has accepted the
	// baseline or a newer frame.
	maxShortDistance = 64
	shortSeqBits     = 7
	maxShortLate     = 1<<(shortSeqBits-1) - 1
	longSeqBits      = 16
	maxLongLate      = 1023
)

// Header precedes the coded part of a payload. It can be parsed without the state of the stream.
//
//	short, 14 to 21 bits, each byte from its high bit down:
//	  0; RPC number: 0 as 0, 1 to 3 as 1 and 2 bits, 4 to 10 as 100 and 3 bits less 4;
//	  distance to the baseline: 1 to 16 as 0 and 4 bits less 1, 17 to 32 as 10 and 4 bits less
//	  17, 33 to 64 as 11 and 5 bits less 33; sequence (7)
//	short with the hash of the baseline, 36 to 40 bits, RPC number up to 3:
//	  0, 100111, then as above from the RPC number on, hash (16)
//	long, 5 bytes:
//	  flags (bit 7 set, bit 6 clear, bit 5: has a baseline, bit 4: a hash follows),
//	  RPC number, sequence (2, low byte first), distance to the baseline or epoch,
//	  and if the flag says so the hash of the baseline (2, low byte first)
//
// The coded part may begin at the next bit; see [Header.FreeBits].
type Header struct {
	RPC      uint8
	Long     bool
	Seq      uint16 // low bits: 7 in a short header, 16 in a long one
	Distance int    // distance to the baseline; 0: no baseline
	Epoch    uint8  // epoch of a frame without a baseline
	Checked  bool   // a hash is present
	Hash     uint16
}

// NewHeader returns the header of payload n, in the short form if that is unambiguous. A distance
// of 0 means that there is no baseline.
func NewHeader(rpc int, n uint64, distance int, epoch uint8) Header {
	return Header{
		RPC: uint8(rpc), Seq: uint16(n), Distance: distance, Epoch: epoch,
		Long: distance == 0 || distance > maxShortDistance || rpc > maxShortRPC,
	}
}

const (
	flagLong     = 1 << 7
	flagControl  = 1 << 6 // a message that is not a frame; see internal/message
	flagBaseline = 1 << 5
	flagHash     = 1 << 4
	flagMask     = flagLong | flagControl | flagBaseline | flagHash
)

// Append appends the header in whole bytes. Bits of the last byte that it does not use are 0.
func (h *Header) Append(dst []byte) []byte {
	if !h.Long {
		return h.appendShort(dst)
	}
	flags, last := byte(flagLong), h.Epoch
	if h.Distance != 0 {
		flags, last = flags|flagBaseline, byte(h.Distance)
	}
	if h.Checked {
		flags |= flagHash
	}
	dst = append(dst, flags, h.RPC, byte(h.Seq), byte(h.Seq>>8), last)
	if h.Checked {
		dst = binary.LittleEndian.AppendUint16(dst, h.Hash)
	}
	return dst
}

// hashCode announces a hash. It follows the first bit of a short header, in place of an RPC number.
const (
	hashCode     = 0b100_111
	hashCodeBits = 6
)

func (h *Header) appendShort(dst []byte) []byte {
	var v uint64
	if h.Checked {
		v = hashCode
	}
	switch n := h.rpcBits(); n {
	case 1:
		v <<= 1
	case 3:
		v = v<<3 | 4 | uint64(h.RPC)
	default:
		v = 4<<3 | uint64(h.RPC-4)
	}
	code, n := h.distanceCode()
	v = v<<n | code
	v = v<<shortSeqBits | uint64(h.Seq)&(1<<shortSeqBits-1)
	if h.Checked {
		v = v<<16 | uint64(h.Hash)
	}
	v <<= 64 - h.Bits()
	for range h.Size() {
		dst = append(dst, byte(v>>56))
		v <<= 8
	}
	return dst
}

// rpcBits returns the length of the RPC number in a short header.
func (h *Header) rpcBits() int {
	switch {
	case h.RPC == 0:
		return 1
	case h.RPC < 4:
		return 3
	}
	return 6
}

// distanceCode returns the code of the distance in a short header and its length in bits.
func (h *Header) distanceCode() (code uint64, n int) {
	switch d := uint64(h.Distance); {
	case d <= 16:
		return d - 1, 5
	case d <= 32:
		return 0b10_0000 + d - 17, 6
	default:
		return 0b11_00000 + d - 33, 7
	}
}

// parseDistance parses the code of a distance at the high end of v and returns its length in bits.
func parseDistance(v uint64) (distance, n int) {
	switch {
	case v>>63 == 0:
		return int(v>>59) + 1, 5
	case v>>62 == 0b10:
		return int(v>>58)&15 + 17, 6
	}
	return int(v>>57)&31 + 33, 7
}

// SetHash adds the hash of the baseline to the header.
func (h *Header) SetHash(hash uint16) {
	h.Long, h.Checked, h.Hash = h.Long || h.RPC > maxShortHashRPC, true, hash
}

// Bits returns the length of the header in bits.
func (h *Header) Bits() int {
	n := 8 * LongHeader
	if !h.Long {
		_, distance := h.distanceCode()
		n = 1 + h.rpcBits() + distance + shortSeqBits
	}
	if h.Checked {
		n += 8 * hashSize
		if !h.Long {
			n += hashCodeBits
		}
	}
	return n
}

// Size returns the number of bytes that the header occupies, including a partly used last byte.
func (h *Header) Size() int { return (h.Bits() + 7) / 8 }

// UncheckedSize returns the size of the header without a hash.
func (h *Header) UncheckedSize() int {
	u := *h
	u.Checked = false
	if h.Checked && h.RPC > maxShortHashRPC {
		u.Long = h.RPC > maxShortRPC || h.Distance > maxShortDistance
	}
	return u.Size()
}

// FreeBits returns the number of low bits of the last byte that the header leaves to the coded
// part.
func (h *Header) FreeBits() uint { return uint(8*h.Size() - h.Bits()) }

// Parse parses a header. It ignores the bits of the last byte that belong to the coded part.
func Parse(b []byte) (h Header, err error) {
	if len(b) == 0 {
		return h, Malformed("no header")
	}
	if b[0]&flagLong == 0 {
		return parseShort(b)
	}
	if b[0]&flagControl != 0 || b[0]&^flagMask != 0 || len(b) < LongHeader {
		return h, Malformed("no header of a frame")
	}
	h = Header{Long: true, RPC: b[1], Seq: binary.LittleEndian.Uint16(b[2:])}
	if h.Checked = b[0]&flagHash != 0; h.Checked {
		if b[0]&flagBaseline == 0 || len(b) < LongHeader+hashSize {
			return h, Malformed("no hash of a baseline")
		}
		h.Hash = binary.LittleEndian.Uint16(b[LongHeader:])
	}
	if b[0]&flagBaseline == 0 {
		if h.Epoch = b[4]; h.Epoch > EpochMask {
			return h, Malformed("epoch %d", h.Epoch)
		}
		return h, nil
	}
	if h.Distance = int(b[4]); h.Distance == 0 {
		return h, Malformed("a frame is no baseline of itself")
	}
	return h, nil
}

// parseShort parses a short header. It reads up to 8 bytes, high bit first.
func parseShort(b []byte) (h Header, err error) {
	var v uint64
	for i := range min(8, len(b)) {
		v |= uint64(b[i]) << (56 - 8*i)
	}
	v <<= 1
	if v>>(64-hashCodeBits) == hashCode {
		h.Checked = true
		v <<= hashCodeBits
	}
	switch rpc := uint8(v >> 61); {
	case rpc > 4:
		h.RPC = rpc & 3
	case rpc == 4:
		h.RPC = uint8(v>>58)&7 + 4
	}
	v <<= h.rpcBits()
	d, n := parseDistance(v)
	v <<= n
	h.Distance, h.Seq = d, uint16(v>>(64-shortSeqBits))
	if h.Checked {
		h.Hash = uint16(v << shortSeqBits >> 48)
	}
	if len(b) < h.Size() || h.RPC > maxShortRPC || h.Checked && h.RPC > maxShortHashRPC {
		return h, Malformed("%d bytes are no header", len(b))
	}
	return h, nil
}

// Unwrap returns the 64-bit sequence of the header, given the newest accepted one, and reports
// false if it were negative. A long header may be behind by at most maxLongLate and ahead by nearly
// 2^16: payloads before an outage were lost, and those after it must not be mistaken for late ones.
func (h *Header) Unwrap(newest uint64) (n uint64, ok bool) {
	width, late := uint(longSeqBits), uint64(maxLongLate)
	if !h.Long {
		width, late = shortSeqBits, maxShortLate
	}
	n = seq.Unwrap(uint64(h.Seq), width, newest, late)
	return n, n < newest+1<<width-late
}

// PeekRPC returns the number of the RPC that a payload belongs to, without decoding it.
func PeekRPC(payload []byte) (int, error) {
	if len(payload) >= maxShortHeader { // fast path: short header, one of the first RPCs, no hash
		switch first := payload[0]; {
		case first < 0b0_100_0000:
			return 0, nil
		case first >= 0b0_101_0000 && first < flagLong:
			return int(first>>4) & 3, nil
		}
	}
	h, err := Parse(payload)
	return int(h.RPC), err
}
