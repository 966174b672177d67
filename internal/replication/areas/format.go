package areas

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// A message is a header, a directory in bits, and the coded bytes of the groups in the order of the
// directory. The directory has a code for each member of the baseline's message, by ascending slot,
// and then entries of other members.
//
// The header is 16 bits, low byte first: the distance to the baseline, 0 if there is none, and the
// low bits of the number. Without a baseline a byte with six more bits of the number follows.
const (
	distanceBits = 6
	shortBits    = 10
	longBits     = 16
)

// maxDistance is the maximum distance to a baseline.
const maxDistance = snapshot.Ring - 2

// Codes of members of the baseline's message.
const (
	memberChanged = 0b1   // 1 bit: a size, and coded bytes
	memberSame    = 0b10  // 2 bits: nothing changed
	memberStale   = 0b100 // 3 bits: it is not in this message, but still visible
	memberLeft    = 0b000 // 3 bits: it left the view
)

// Entries of other members.
const (
	entryBits = 2

	entryEnd      = 0
	entryKeyframe = 1 // slot, type, size; objects that entered may refer to the baseline's message
	entryResumed  = 2 // slot, distance of a message that contains it, whether it changed, size
	// As entryResumed, but the member is not in this message for later references. With a distance
	// of 0, type and size follow, as in entryKeyframe: objects whose groups are not in the message.
	// With distancePartial, nothing follows.
	entryShown = 3

	// distancePartial is the distance in an entryShown that tells that some objects of the client's
	// view have not been sent yet.
	distancePartial = 1<<distanceBits - 1
)

// Bits per digit of counts.
const (
	slotBits = 5
	typeBits = 2
	sizeBits = 5
)

// maxSize is the maximum size of the coded bytes of a group, and the limit of other counts.
const maxSize = 1 << 20

// writeCount writes v in digits, lowest first, each with a bit that tells whether another follows.
func writeCount(w *bitio.Writer, v uint64, digit uint) {
	for v>>digit != 0 {
		w.WriteBits(v&(1<<digit-1)|1<<digit, digit+1)
		v >>= digit
	}
	w.WriteBits(v, digit+1)
}

func readCount(r *bitio.Reader, digit uint) (v uint64) {
	for at := uint(0); at < 20; at += digit {
		d := r.ReadBits(digit + 1)
		v |= d & (1<<digit - 1) << at
		if d>>digit == 0 {
			return v
		}
	}
	return maxSize
}

func appendHeader(dst []byte, n uint64, distance int) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n<<distanceBits)|uint16(distance))
	if distance == 0 {
		dst = append(dst, byte(n>>shortBits)&(1<<(longBits-shortBits)-1))
	}
	return dst
}

// parseHeader returns the low bits of the number of a message, how many there are, and the distance
// to the baseline.
func parseHeader(r *bitio.Reader) (n uint64, width uint, distance uint64, err error) {
	distance, n = r.ReadBits(distanceBits), r.ReadBits(shortBits)
	width = shortBits
	if distance == 0 {
		n |= r.ReadBits(8) << shortBits
		width = longBits
	}
	if r.Err() != nil || distance > maxDistance || n>>width != 0 {
		return 0, 0, 0, fmt.Errorf("%w: header", snapshot.ErrMalformed)
	}
	return n, width, distance, nil
}
