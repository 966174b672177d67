package areas

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/snapshot"
)

// A message consists of a header, a directory, which is a string of bits, and the coded bytes of
// groups in the order of the directory. The directory contains one code for each member of the
// baseline's message, by ascending slot, and then entries for other members. A member is a group
// that the message shows; its slot is its number in the client's view.
//
// The header is 16 bits, low byte first: the distance to the baseline, or 0 without a baseline, and
// the low bits of the message's number. Without a baseline, one more byte contains six more bits of
// the number.
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
	memberStale   = 0b100 // 3 bits: not in this message, but still visible
	memberLeft    = 0b000 // 3 bits: the member has left the view
)

// Entries of other members.
const (
	entryBits = 2

	entryEnd = 0
	// Slot, type and size follow. The objects that entered the group may refer to the baseline's
	// message.
	entryKeyframe = 1
	// The slot, the distance to a message that contains the member, a bit that is set if the member
	// has changed, and the size follow.
	entryResumed = 2
	// Like entryResumed, but later messages must not refer to the member in this message. A
	// distance of 0 means objects whose groups are not in the message: type and size follow, as in
	// entryKeyframe. After distancePartial nothing follows.
	entryShown = 3

	// distancePartial is the distance in an entryShown that reports that some objects of the
	// client's view have not been sent yet.
	distancePartial = 1<<distanceBits - 1
)

// Bits per digit of counts.
const (
	slotBits = 5
	typeBits = 2
	sizeBits = 5
)

// maxSize is the upper limit of all counts, which are less than maxSize. One of them is the size of
// a group's coded bytes.
const maxSize = 1 << 20

// writeCount writes v in digits of that many bits, the lowest digit first. The bit above each digit
// is set if another digit follows.
func writeCount(w *bitio.Writer, v uint64, digit uint) {
	for v>>digit != 0 {
		w.WriteBits(v&(1<<digit-1)|1<<digit, digit+1)
		v >>= digit
	}
	w.WriteBits(v, digit+1)
}

// readCount reads a count. It returns maxSize if the count has too many digits.
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

// parseHeader returns the low bits of the number of a message, the number of these bits, and the
// distance to the baseline, or 0 without a baseline.
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
