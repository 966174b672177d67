package snapshot

import (
	"fmt"

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
	// Newest is the low bits of the newest sequence number: 10 in the short form of an ack, 16 in
	// the long form, which is used after a recent start, for NoInitial and from epoch 8 on.
	Newest uint16
	// Bit i of Window is set if snapshot Newest-1-i was decoded.
	Window uint64
}

const (
	ackWindow    = 64 // bits
	askNoInitial = 1  // request code of Ack.NoInitial
)

func (a *Ack) wire() seq.Ack {
	w := seq.Ack{Epoch: a.Epoch, None: a.None}
	if a.NoInitial {
		w.Reset = askNoInitial
	}
	if !a.None {
		w.SetWindow(a.Window, ackWindow)
		w.Newest = a.Newest & uint16(seq.Mask(uint64(w.Width())))
	}
	return w
}

// Append appends the ack and returns the extended slice. It has 2 or 3 bytes if nothing was lost,
// and at most 15.
func (a *Ack) Append(dst []byte) []byte {
	w := a.wire()
	return w.Append(dst)
}

// ParseAck parses the ack at the start of b and returns the bytes that follow it. Any input is
// safe. An error wraps [ErrMalformed].
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	w, rest, ok := seq.ParseAck(b)
	if ok {
		a = Ack{None: w.None, NoInitial: w.Reset == askNoInitial, Epoch: w.Epoch, Newest: w.Newest, Window: w.FullWindow(ackWindow)}
	}
	if !ok || a.wire() != w {
		return Ack{}, nil, fmt.Errorf("%w: ack", ErrMalformed)
	}
	return a, rest, nil
}
