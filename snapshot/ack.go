package snapshot

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/bitio"
	"github.com/uplink-rpc/uplink/internal/codec/malformed"
	"github.com/uplink-rpc/uplink/internal/seq"
)

// Ack reports which snapshots a decoder has decoded, and its requests. Acks may be lost, duplicated
// and reordered.
type Ack struct {
	// None reports that no snapshot was decoded. Newest and Window are 0 in this case.
	None bool
	// NoInitial reports that the initial set of the decoder differs from the encoder's.
	NoInitial bool
	// Epoch is the number of resets that the decoder has requested, modulo 256.
	Epoch uint8
	// Newest is the low 16 bits of the newest sequence number.
	Newest uint16
	// Bit i of Window is set if snapshot Newest-1-i was decoded.
	Window uint64
}

// An ack begins with a byte of flags. If the flags say so, the epoch follows; unless the ack is
// empty, the newest sequence number (2 bytes, low byte first); and the n low bytes of the window,
// where n is in the four high bits of the flags. The bits above them are all ones or all zeros.
const (
	ackNone = 1 << iota
	ackNoInitial
	ackEpoch
	ackOnes

	ackBytes = 4 // shift of n in the flags
)

// Append appends the ack and returns the extended slice. It has 3 bytes if nothing was lost, and at
// most 12.
func (a *Ack) Append(dst []byte) []byte {
	high, flags := uint64(0), byte(0)
	if a.Window>>63 != 0 {
		high, flags = ^uint64(0), ackOnes
	}
	if a.None {
		flags |= ackNone
	}
	if a.NoInitial {
		flags |= ackNoInitial
	}
	if a.Epoch != 0 {
		flags |= ackEpoch
	}
	n := seq.ByteLen(a.Window ^ high)
	dst = append(dst, flags|byte(n)<<ackBytes)
	if a.Epoch != 0 {
		dst = append(dst, a.Epoch)
	}
	if a.None {
		return dst
	}
	return seq.AppendBits(binary.LittleEndian.AppendUint16(dst, a.Newest), a.Window, n)
}

// ParseAck parses the ack at the start of b and returns the bytes that follow it. Any input is
// safe. An error wraps [ErrMalformed].
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	var r bitio.Reader
	r.Reset(b)
	flags := byte(r.ReadBits(8))
	n := uint(flags >> ackBytes)
	a.None, a.NoInitial = flags&ackNone != 0, flags&ackNoInitial != 0
	if n > 8 || a.None && (n > 0 || flags&ackOnes != 0) {
		return Ack{}, nil, fmt.Errorf("%w: flags %#x of an ack", ErrMalformed, flags)
	}
	if flags&ackEpoch != 0 {
		a.Epoch = uint8(r.ReadBits(8))
	}
	if !a.None {
		a.Newest, a.Window = uint16(r.ReadBits(16)), r.ReadBits(8*n)
	}
	if flags&ackOnes != 0 {
		a.Window |= ^seq.Mask(uint64(8 * n))
	}
	if r.Err() != nil {
		return Ack{}, nil, fmt.Errorf("%w: ack", malformed.ErrTruncated)
	}
	return a, r.Rest(), nil
}
