package wire

import (
	"encoding/binary"
)

const heartbeatBody = 12

// MaxHold is the maximum hold time in a heartbeat, in microseconds.
const MaxHold = 1<<24 - 1

const flagAnswer = 1 << 0 // of a heartbeat

// Heartbeat keeps a session alive and measures the round-trip time: the sender of an ask subtracts
// the hold time of its echo from the time since it sent the ask.
type Heartbeat struct {
	Ask    uint32 // a random number, not 0
	Echo   uint32 // the newest ask that the sender received; 0: none
	Hold   uint32 // microseconds since it received that, at most MaxHold; 0 without an echo
	Answer bool   // requests a heartbeat from the receiver at once
}

// AppendHeartbeat appends the body of a heartbeat. Only 24 bits of the hold time are sent.
func AppendHeartbeat(b []byte, h Heartbeat) []byte {
	last := h.Hold & MaxHold
	if h.Answer {
		last |= flagAnswer << 24
	}
	b = binary.LittleEndian.AppendUint32(b, h.Ask)
	b = binary.LittleEndian.AppendUint32(b, h.Echo)
	return binary.LittleEndian.AppendUint32(b, last)
}

// ParseHeartbeat reads the body of a heartbeat; one of any other length is [ErrMalformed]. Unknown
// flags are ignored.
func ParseHeartbeat(body []byte) (Heartbeat, error) {
	if len(body) != heartbeatBody {
		return Heartbeat{}, ErrMalformed
	}
	last := binary.LittleEndian.Uint32(body[8:])
	return Heartbeat{
		Ask: binary.LittleEndian.Uint32(body), Echo: binary.LittleEndian.Uint32(body[4:]),
		Hold: last & MaxHold, Answer: last>>24&flagAnswer != 0,
	}, nil
}

// MaxCloseText is the maximum size of the text of a close in bytes.
const MaxCloseText = 64

// CloseCode is the reason of a close.
type CloseCode uint8

// The codes of a close.
const (
	CloseNormal   CloseCode = iota // the client quits, or the listener kicks it
	CloseShutdown                  // the sender shuts down
	CloseReplaced                  // the same client has a new session
	CloseProtocol                  // the receiver violated the protocol
	CloseLimit                     // the client exceeded a limit
	CloseBusy                      // the listener refuses the session for the time being
)

// Close ends a session.
type Close struct {
	Code CloseCode
	Text []byte // human-readable but untrusted; at most MaxCloseText bytes
}

// AppendClose appends the body of a close. The text is truncated to [MaxCloseText] bytes.
func AppendClose(b []byte, c Close) []byte {
	b = append(b, uint8(c.Code))
	return append(b, c.Text[:min(len(c.Text), MaxCloseText)]...)
}

// ParseClose reads the body of a close. The text shares body's memory. An empty body, or a longer
// text than [MaxCloseText], is [ErrMalformed].
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
	// Generation is the number of changes of its own address that the client knows of, modulo 256.
	Generation uint8
}

// AppendResponse appends the body of a response.
func AppendResponse(b []byte, r Response) []byte {
	return append(append(b, r.Data[:]...), r.Generation)
}

// ParseResponse reads the body of a response. Any other length than 9 bytes is [ErrMalformed].
func ParseResponse(body []byte) (Response, error) {
	if len(body) != ChallengeSize+1 {
		return Response{}, ErrMalformed
	}
	return Response{Data: [ChallengeSize]byte(body), Generation: body[ChallengeSize]}, nil
}

// ParseProbe checks the body of a probe. Any byte but zero is [ErrMalformed].
func ParseProbe(body []byte) error {
	for _, b := range body {
		if b != 0 {
			return ErrMalformed
		}
	}
	return nil
}

// AppendProbeAnswer appends the body of the answer to a probe: the size of the whole datagram.
func AppendProbeAnswer(b []byte, size int) []byte {
	return binary.LittleEndian.AppendUint16(b, uint16(size))
}

// ParseProbeAnswer reads the size from the body of the answer to a probe; any other length than 2
// bytes is [ErrMalformed].
func ParseProbeAnswer(body []byte) (size int, err error) {
	if len(body) != 2 {
		return 0, ErrMalformed
	}
	return int(binary.LittleEndian.Uint16(body)), nil
}
