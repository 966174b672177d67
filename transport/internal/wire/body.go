package wire

import (
	"encoding/binary"
)

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

// MaxCloseText is the size of the longest text of a close in bytes.
const MaxCloseText = 64

// CloseCode says who ended a session.
type CloseCode uint8

// The codes of a close.
const (
	CloseNormal   CloseCode = iota // the application closed the connection
	CloseShutdown                  // the listener is going away
	CloseReplaced                  // the same client has a new session
)

// Close ends a session.
type Close struct {
	Code CloseCode
	Text []byte // for people; at most MaxCloseText bytes, of any kind
}

// AppendClose appends the body of a close. What the text has beyond [MaxCloseText] bytes is cut off.
func AppendClose(b []byte, c Close) []byte {
	b = append(b, uint8(c.Code))
	return append(b, c.Text[:min(len(c.Text), MaxCloseText)]...)
}

// ParseClose reads the body of a close. The text shares body's memory. An empty body, or a longer text
// than [MaxCloseText], is [ErrMalformed].
func ParseClose(body []byte) (Close, error) {
	if len(body) < 1 || len(body) > 1+MaxCloseText {
		return Close{}, ErrMalformed
	}
	return Close{Code: CloseCode(body[0]), Text: body[1:]}, nil
}

// ChallengeSize is the size of the random data of a challenge, in bytes.
const ChallengeSize = 8

// ParseChallenge reads the body of a challenge: any 8 bytes. Any other length is [ErrMalformed].
func ParseChallenge(body []byte) (data [ChallengeSize]byte, err error) {
	if len(body) != ChallengeSize {
		return data, ErrMalformed
	}
	return [ChallengeSize]byte(body), nil
}

// Response is the answer to a challenge.
type Response struct {
	Data [ChallengeSize]byte // of the challenge
	// Generation is how often the client knows its own address to have changed, modulo 256.
	Generation uint8
}

// AppendResponse appends the body of a response.
func AppendResponse(b []byte, r Response) []byte {
	return append(append(b, r.Data[:]...), r.Generation)
}

// ParseResponse reads the body of a response. A body of another length than 9 bytes is [ErrMalformed].
func ParseResponse(body []byte) (Response, error) {
	if len(body) != ChallengeSize+1 {
		return Response{}, ErrMalformed
	}
	return Response{Data: [ChallengeSize]byte(body), Generation: body[ChallengeSize]}, nil
}

// ParseProbe checks the body of a probe, which is zeros, any number of them; else it is [ErrMalformed].
func ParseProbe(body []byte) error {
	for _, b := range body {
		if b != 0 {
			return ErrMalformed
		}
	}
	return nil
}

// AppendProbe appends the body of a probe that makes the whole datagram, of which b is the header, size bytes
// long with a seal of so many.
func AppendProbe(b []byte, size, tag int) []byte {
	var zeros [MaxDatagram]byte
	return append(b, zeros[:size-tag-len(b)]...)
}

// AppendProbeAnswer appends the body of the answer to a probe: the size of the whole datagram.
func AppendProbeAnswer(b []byte, size int) []byte {
	return binary.LittleEndian.AppendUint16(b, uint16(size))
}

// ParseProbeAnswer reads the size from the body of the answer to a probe; a body of another length than 2 bytes
// is [ErrMalformed].
func ParseProbeAnswer(body []byte) (size int, err error) {
	if len(body) != 2 {
		return 0, ErrMalformed
	}
	return int(binary.LittleEndian.Uint16(body)), nil
}
