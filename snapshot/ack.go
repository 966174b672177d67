package snapshot

import (
	"encoding/binary"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/codec/malformed"
)

// Ack says which snapshots a decoder holds, and what it asks for. It may be lost, repeated and overtaken.
type Ack struct {
	// None says that nothing is held; Newest and Window are 0 then.
	None bool
	// NoInitial says that the encoder's initial set is not the decoder's.
	NoInitial bool
	// Epoch counts the resets that the decoder asked for. An encoder that is in another epoch starts again.
	Epoch uint8
	// Newest names the newest snapshot that is held.
	Newest uint16
	// Window has bit i set for the one i+1 before it.
	Window uint64
}

// An ack is a byte of flags, the epoch if it is not 0, the newest snapshot if there is one, low byte first, and the low
// bytes of the window, as many as the flags say; those above are all ones or all zeros.
const (
	ackNone = 1 << iota
	ackNoInitial
	ackEpoch
	ackOnes

	ackBytes = 4 // how far up the number of bytes is
)

// Append appends the ack: 3 bytes where nothing was lost, 12 at most.
func (a *Ack) Append(dst []byte) []byte {
	above := uint64(0)
	flags := byte(0)
	if a.Window>>63 != 0 {
		above, flags = ^uint64(0), ackOnes
	}
	n := 0
	for n < 8 && a.Window>>(8*n) != above>>(8*n) {
		n++
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
	dst = append(dst, flags|byte(n)<<ackBytes)
	if a.Epoch != 0 {
		dst = append(dst, a.Epoch)
	}
	if a.None {
		return dst
	}
	dst = binary.LittleEndian.AppendUint16(dst, a.Newest)
	for i := range n {
		dst = append(dst, byte(a.Window>>(8*i)))
	}
	return dst
}

// ParseAck reads the ack at the start of b and gives what follows it. Any input is safe.
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	if len(b) == 0 {
		return a, nil, cutAck(b)
	}
	flags, n, rest := b[0], int(b[0]>>ackBytes), b[1:]
	a.None, a.NoInitial = flags&ackNone != 0, flags&ackNoInitial != 0
	if n > 8 || a.None && (n > 0 || flags&ackOnes != 0) {
		return Ack{}, nil, fmt.Errorf("%w: an ack's flags are %#x", ErrMalformed, flags)
	}
	if flags&ackEpoch != 0 {
		if len(rest) == 0 {
			return Ack{}, nil, cutAck(b)
		}
		a.Epoch, rest = rest[0], rest[1:]
	}
	if a.None {
		return a, rest, nil
	}
	if len(rest) < 2+n {
		return Ack{}, nil, cutAck(b)
	}
	a.Newest, rest = binary.LittleEndian.Uint16(rest), rest[2:]
	if flags&ackOnes != 0 && n < 8 {
		a.Window = ^uint64(0) << (8 * n)
	}
	for i, v := range rest[:n] {
		a.Window |= uint64(v) << (8 * i)
	}
	return a, rest[n:], nil
}

func cutAck(b []byte) error {
	return fmt.Errorf("%w: %d bytes are no ack", malformed.ErrTruncated, len(b))
}
