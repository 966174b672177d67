package statesync

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/snapshot"
)

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

// Append appends the ack and returns the extended slice. An ack of nothing has 1 byte; others have
// 4 bytes and those of the window up to the oldest missing packet, at most 12.
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
