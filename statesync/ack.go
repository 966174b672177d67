package statesync

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/uplink-rpc/uplink/snapshot"
)

// Ack says which packets a receiver holds: the newest, and bit i of Window for the one i+1 before it. Epoch is the one of
// the newest. None says that nothing is held yet; then all but Reset is 0. Reset asks for a new start.
type Ack struct {
	None, Reset bool
	Epoch       uint8
	Newest      uint16
	Window      uint64
}

const (
	ackNone = 1 << iota
	ackReset
	ackSize = 2 // shift of the number of bytes of the window's complement
)

// Append appends the ack: 1 byte where nothing is held, else 4 and those of the window up to the oldest packet that
// is missing, 12 at most. An ack of more than 62 packets without a gap takes 4.
func (a *Ack) Append(dst []byte) []byte {
	flags := byte(0)
	if a.Reset {
		flags |= ackReset
	}
	if a.None {
		return append(dst, flags|ackNone)
	}
	missing := ^a.Window & (1<<63 - 1)
	n := (bits.Len64(missing) + 7) / 8
	dst = append(dst, flags|byte(n)<<ackSize, a.Epoch)
	dst = binary.LittleEndian.AppendUint16(dst, a.Newest)
	for ; n > 0; n-- {
		dst = append(dst, byte(missing))
		missing >>= 8
	}
	return dst
}

// ParseAck reads the ack at the start of b and gives what follows it. What Append does not write is [snapshot.ErrMalformed].
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	if len(b) == 0 {
		return a, nil, fmt.Errorf("%w: ack of 0 bytes, want 1 or more", snapshot.ErrMalformed)
	}
	flags := b[0]
	a.None, a.Reset = flags&ackNone != 0, flags&ackReset != 0
	n := int(flags >> ackSize)
	switch {
	case n > 8 || a.None && n > 0:
		return Ack{}, nil, fmt.Errorf("%w: first byte %#x of an ack", snapshot.ErrMalformed, flags)
	case a.None:
		return a, b[1:], nil
	case len(b) < 4+n:
		return Ack{}, nil, fmt.Errorf("%w: ack of %d bytes, want %d", snapshot.ErrMalformed, len(b), 4+n)
	}
	a.Epoch, a.Newest = b[1], binary.LittleEndian.Uint16(b[2:])
	missing := uint64(0)
	for i := range n {
		missing |= uint64(b[4+i]) << (8 * i)
	}
	if n > 0 && b[3+n] == 0 || missing>>63 != 0 {
		return Ack{}, nil, fmt.Errorf("%w: window of an ack", snapshot.ErrMalformed)
	}
	a.Window = ^missing & (1<<63 - 1)
	return a, b[4+n:], nil
}
