package rpcdelta

import (
	"encoding/binary"
	"errors"

	"github.com/uplink-rpc/uplink/internal/seq"
	"github.com/uplink-rpc/uplink/rpcdelta/internal/wire"
)

// ackWindow is the maximum number of payloads before the newest one that an ack covers.
const ackWindow = 63

// Ack reports which payloads a decoder processed: the newest one, and a window of those before it.
// The bits are final: if a payload was not processed when a newer one was, it never will be.
type Ack struct {
	// RPC is the number of the RPC.
	RPC uint8
	// Epoch is the decoder's epoch, 0 to 7.
	Epoch uint8
	// None reports that nothing was processed yet. Seq, Window and Len are 0 in this case.
	None bool
	// ResetReason is not nil if the decoder requests a reset: [ErrBaselineMissing] or [ErrDesync].
	ResetReason error
	// Seq is the low 16 bits of the sequence of the newest payload.
	Seq uint16
	// Bit i of Window is set if payload Seq-1-i was processed, for i < Len.
	Window uint64
	// Len is the number of payloads in the window, at most 63.
	Len int
	// Whole reports that no payload older than the window was processed in this epoch.
	Whole bool
}

// An ack begins with 32 bits, low bit first: the form (0 short, 1 long); in the short form the RPC
// number (3), in the long form the reason for a reset (2) and none (1); epoch (3); whole (1); raw
// (1); the length of the window (6); a zero; Seq (16). In the long form, a byte with the RPC number
// follows. If raw is set, the window follows in whole bytes, low bit first; otherwise all of its
// bits are set.
const (
	maxShortAckRPC = 7

	ackLong  = 1 << 0
	ackNone  = 1 << 3
	ackWhole = 1 << 7
	ackRaw   = 1 << 8
)

// resetReasons are the reasons for a reset by their code in an ack.
var resetReasons = []error{nil, ErrBaselineMissing, ErrDesync}

func resetCode(reason error) uint32 {
	switch {
	case reason == nil:
		return 0
	case errors.Is(reason, ErrDesync):
		return 2
	}
	return 1
}

// Append appends the ack and returns the extended slice. It has 4 bytes if no reset is requested,
// the window has no hole and the RPC number is below 8, and at most 13 bytes otherwise.
func (a *Ack) Append(dst []byte) []byte {
	v := uint32(a.Epoch)<<4 | uint32(a.Len)<<9 | uint32(a.Seq)<<16
	long := a.None || a.ResetReason != nil || a.RPC > maxShortAckRPC
	if long {
		v |= ackLong | resetCode(a.ResetReason)<<1
	} else {
		v |= uint32(a.RPC) << 1
	}
	if a.None {
		v |= ackNone
	}
	if a.Whole {
		v |= ackWhole
	}
	raw := a.Window != seq.Mask(uint64(a.Len))
	if raw {
		v |= ackRaw
	}
	dst = binary.LittleEndian.AppendUint32(dst, v)
	if long {
		dst = append(dst, a.RPC)
	}
	if raw {
		dst = seq.AppendBits(dst, a.Window, (a.Len+7)/8)
	}
	return dst
}

// ParseAck parses the ack at the start of b and returns the bytes that follow it.
func ParseAck(b []byte) (a Ack, rest []byte, err error) {
	if len(b) < 4 {
		return a, nil, wire.Malformed("%d bytes are no ack", len(b))
	}
	v := binary.LittleEndian.Uint32(b)
	rest = b[4:]
	a = Ack{
		Epoch: uint8(v >> 4 & wire.EpochMask),
		Whole: v&ackWhole != 0,
		Len:   int(v >> 9 & 63),
		Seq:   uint16(v >> 16),
	}
	if v&(1<<15) != 0 {
		return a, nil, wire.Malformed("an ack's spare bit is set")
	}
	if v&ackLong == 0 {
		a.RPC = uint8(v >> 1 & maxShortAckRPC)
	} else {
		reason := v >> 1 & 3
		if len(rest) == 0 || int(reason) >= len(resetReasons) {
			return a, nil, wire.Malformed("no ack")
		}
		a.ResetReason, a.None = resetReasons[reason], v&ackNone != 0
		a.RPC, rest = rest[0], rest[1:]
	}
	if a.None && (a.Seq != 0 || a.Len != 0) {
		return a, nil, wire.Malformed("an ack of nothing names a payload")
	}
	a.Window = seq.Mask(uint64(a.Len))
	if v&ackRaw != 0 {
		w, behind, ok := seq.ParseBits(rest, (a.Len+7)/8)
		if !ok {
			return a, nil, wire.Malformed("an ack ends in its window")
		}
		if w&^a.Window != 0 {
			return a, nil, wire.Malformed("an ack's window is longer than it says")
		}
		a.Window, rest = w, behind
	}
	return a, rest, nil
}
