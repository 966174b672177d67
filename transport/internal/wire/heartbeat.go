package wire

import "encoding/binary"

const heartbeatBody = 11

// The flags of a heartbeat.
const (
	flagEcho   = 1 << 0
	flagAnswer = 1 << 1
)

// Heartbeat keeps a session alive and measures its round trip: the receiver of an echo subtracts it
// and the hold time from its own clock.
type Heartbeat struct {
	Clock  uint32 // the sender's clock in milliseconds, from any start, wrapping
	Echo   uint32 // the receiver's newest clock that the sender knows; valid if HasEcho
	Hold   uint16 // milliseconds since the sender got that clock
	Answer bool   // the receiver shall send a heartbeat at once
	// HasEcho tells that Echo and Hold are set. Without it they are zero on the wire.
	HasEcho bool
}

// AppendHeartbeat appends the body of a heartbeat.
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
	b = binary.LittleEndian.AppendUint16(b, h.Hold)
	return append(b, flags)
}

// ParseHeartbeat reads the body of a heartbeat; one of any other length is [ErrMalformed]. Flags that
// this version does not know are ignored.
func ParseHeartbeat(body []byte) (Heartbeat, error) {
	if len(body) != heartbeatBody {
		return Heartbeat{}, ErrMalformed
	}
	flags := body[10]
	h := Heartbeat{
		Clock:   binary.LittleEndian.Uint32(body),
		Answer:  flags&flagAnswer != 0,
		HasEcho: flags&flagEcho != 0,
	}
	if h.HasEcho {
		h.Echo = binary.LittleEndian.Uint32(body[4:])
		h.Hold = binary.LittleEndian.Uint16(body[8:])
	}
	return h, nil
}
