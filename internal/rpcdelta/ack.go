package rpcdelta

import (
	"errors"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/wire"
	"github.com/uplink-rpc/uplink/internal/seq"
)

// ackWindow is the maximum number of payloads before the newest one that an ack covers.
const ackWindow = 63

// Ack reports which payloads a decoder processed: the newest one, and a window of earlier ones. The
// bits are final: a payload that was not processed before a newer one never will be.
type Ack struct {
	// RPC is the number of the RPC.
	RPC uint8
	// Epoch is the decoder's epoch, 0 to 7.
	Epoch uint8
	// None reports that nothing was processed yet. Seq, Window and Len are 0 in this case.
	None bool
	// ResetReason is not nil if the decoder requests a reset: [ErrBaselineMissing] or [ErrDesync].
	ResetReason error
	// Seq is the low bits of the sequence of the newest payload: 16 bits if nothing was processed
	// before the window, Len is 63, a reset is requested or RPC is above 7, otherwise 10.
	Seq uint16
	// Bit i of Window is set if payload Seq-1-i was processed, for i < Len, or if it is known that
	// no payload has this sequence.
	Window uint64
	// Len is the number of payloads in the window, at most 63.
	Len int
	// Whole reports that no payload older than the window was processed in this epoch.
	Whole bool
}

// resetReasons are the reasons for a reset by their code in an ack.
var resetReasons = []error{nil, ErrBaselineMissing, ErrDesync}

func resetCode(reason error) uint8 {
	switch {
	case reason == nil:
		return 0
	case errors.Is(reason, ErrDesync):
		return 2
	}
	return 1
}

func (a *Ack) wire() seq.Ack {
	w := seq.Ack{Stream: a.RPC, Epoch: a.Epoch, None: a.None, Reset: resetCode(a.ResetReason), Whole: a.Whole, Window: a.Window, Len: a.Len}
	w.Newest = a.Seq & uint16(seq.Mask(uint64(w.Width())))
	return w
}

// Append appends the ack and returns the extended slice. It has 3 bytes if no reset is requested,
// the window has no gap and fewer than 63 payloads, Whole is not set and the RPC number is below 8.
// Under these conditions it has 2 bytes if RPC and Epoch are 0 and the window has fewer than 16
// payloads. With one gap it has 4 bytes, and it never has more than 15.
func (a *Ack) Append(dst []byte) []byte {
	w := a.wire()
	return w.Append(dst)
}

// ParseAck parses the ack at the start of b and returns the bytes that follow it.
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	w, rest, ok := seq.ParseAck(b)
	if !ok || int(w.Reset) >= len(resetReasons) || w.Epoch > wire.EpochMask {
		return a, nil, wire.Malformed("no ack")
	}
	return Ack{
		RPC: w.Stream, Epoch: w.Epoch, None: w.None, ResetReason: resetReasons[w.Reset],
		Seq: w.Newest, Window: w.Window, Len: w.Len, Whole: w.Whole,
	}, rest, nil
}
