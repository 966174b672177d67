package wire

import "encoding/binary"

const heartbeatBody = 12

// MaxHold is the longest hold that a heartbeat can say, in microseconds.
const MaxHold = 1<<24 - 1

// The flags of a heartbeat.
const (
	flagEcho   = 1 << 0
	flagAnswer = 1 << 1
)

// Heartbeat keeps a session alive and measures its round trip: the receiver of an echo subtracts it
// and the hold time from its own clock.
type Heartbeat struct {
	Clock  uint32 // the sender's clock in microseconds, from any start, wrapping after 71 minutes
	Echo   uint32 // the receiver's newest clock that the sender knows; valid if HasEcho
	Hold   uint32 // microseconds since the sender got that clock, at most MaxHold
	Answer bool   // the receiver shall send a heartbeat at once
	// HasEcho tells that Echo and Hold are set. Without it they are zero on the wire.
	HasEcho bool
}

// AppendHeartbeat appends the body of a heartbeat. Bits of the hold beyond its 24 are cut off.
func AppendHeartbeat(b []byte, h Heartbeat) []byte {
	var flags uint8
	if h.HasEcho {
		flags |= flagEcho
	} else {
		h.Echo, h.Hold = 0, 0
	}
	if h.Answer {
		flags |= flagAnswer
	}
	b = binary.LittleEndian.AppendUint32(b, h.Clock)
	b = binary.LittleEndian.AppendUint32(b, h.Echo)
	return binary.LittleEndian.AppendUint32(b, h.Hold&MaxHold|uint32(flags)<<24)
}

// ParseHeartbeat reads the body of a heartbeat; one of any other length is [ErrMalformed]. Flags that
// this version does not know are ignored.
func ParseHeartbeat(body []byte) (Heartbeat, error) {
	if len(body) != heartbeatBody {
		return Heartbeat{}, ErrMalformed
	}
	last := binary.LittleEndian.Uint32(body[8:])
	flags := uint8(last >> 24)
	h := Heartbeat{
		Clock:   binary.LittleEndian.Uint32(body),
		Answer:  flags&flagAnswer != 0,
		HasEcho: flags&flagEcho != 0,
	}
	if h.HasEcho {
		h.Echo = binary.LittleEndian.Uint32(body[4:])
		h.Hold = last & MaxHold
	}
	return h, nil
}
