package wire

import (
	"encoding/binary"
)

const heartbeatBody = 12

// MaxHold is the maximum hold time in a heartbeat, in microseconds.
const MaxHold = 1<<24 - 1

const flagAnswer = 1 << 0 // flag in a heartbeat

// Excess returns the number of bytes by which a datagram exceeds [MinDatagram], in units of 8
// bytes, rounded up. It is 0 for datagrams that every path carries, and below 128 for all.
func Excess(size int) uint8 { return uint8(max(size-MinDatagram+7, 0) / 8) }

// Heartbeat keeps a session alive and measures the round-trip time: the sender of an ask subtracts
// the hold time of its echo from the time since it sent the ask.
type Heartbeat struct {
	Ask    uint32 // a random number, not 0
	Echo   uint32 // newest ask that the sender has received; 0: none
	Hold   uint32 // time since it received that ask in µs, at most MaxHold; 0 without an echo
	Answer bool   // requests an immediate heartbeat from the receiver
	// Largest is the [Excess] of the largest datagram, except probes, that the sender has received
	// since its previous heartbeat.
	Largest uint8
}

// AppendHeartbeat appends the body of a heartbeat. Only 24 bits of the hold time, and 7 of Largest,
// are sent.
func AppendHeartbeat(b []byte, h Heartbeat) []byte {
	last := h.Hold & MaxHold
	if h.Answer {
		last |= flagAnswer << 24
	}
	last |= uint32(h.Largest&127) << 25
	b = binary.LittleEndian.AppendUint32(b, h.Ask)
	b = binary.LittleEndian.AppendUint32(b, h.Echo)
	return binary.LittleEndian.AppendUint32(b, last)
}

// ParseHeartbeat reads the body of a heartbeat. A wrong length, or a Largest above that of
// [MaxDatagram], is [ErrMalformed].
func ParseHeartbeat(body []byte) (Heartbeat, error) {
	if len(body) != heartbeatBody {
		return Heartbeat{}, ErrMalformed
	}
	last := binary.LittleEndian.Uint32(body[8:])
	largest := uint8(last >> 25)
	if largest > Excess(MaxDatagram) {
		return Heartbeat{}, ErrMalformed
	}
	return Heartbeat{
		Ask: binary.LittleEndian.Uint32(body), Echo: binary.LittleEndian.Uint32(body[4:]),
		Hold: last & MaxHold, Answer: last>>24&flagAnswer != 0,
		Largest: largest,
	}, nil
}

// ReportSize is the size of a report in bytes.
const ReportSize = 6

// Report tells the sender of datagrams which of them have arrived.
type Report struct {
	Newest  uint16 // low bits of the newest packet number that has arrived
	Arrived uint16 // when it arrived, on any clock, in units of 0.1 ms, modulo 2^16
	Count   uint16 // number of datagrams that have arrived so far, modulo 2^16
}

// AppendReport appends a report.
func AppendReport(b []byte, r Report) []byte {
	b = binary.LittleEndian.AppendUint16(b, r.Newest)
	b = binary.LittleEndian.AppendUint16(b, r.Arrived)
	return binary.LittleEndian.AppendUint16(b, r.Count)
}

// ParseReport reads a report, and returns the bytes after it. Fewer than [ReportSize] bytes are
// [ErrMalformed].
func ParseReport(body []byte) (r Report, rest []byte, err error) {
	if len(body) < ReportSize {
		return r, nil, ErrMalformed
	}
	r.Newest, r.Arrived = binary.LittleEndian.Uint16(body), binary.LittleEndian.Uint16(body[2:])
	r.Count = binary.LittleEndian.Uint16(body[4:])
	return r, body[ReportSize:], nil
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
	CloseBusy                      // the listener temporarily refuses the session
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
	Data [ChallengeSize]byte // data of the challenge
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

const probeAnswerBody = 2

// IsProbeAnswer reports whether a body of [ProbeKind] is an answer. The body of a probe is longer.
func IsProbeAnswer(body []byte) bool { return len(body) == probeAnswerBody }

// ParseProbe checks the body of a probe. Any byte but zero is [ErrMalformed].
func ParseProbe(body []byte) error {
	for _, b := range body {
		if b != 0 {
			return ErrMalformed
		}
	}
	return nil
}

// AppendProbeAnswer appends the body of the answer to a probe. size is the size of the probe's
// datagram.
func AppendProbeAnswer(b []byte, size int) []byte {
	return binary.LittleEndian.AppendUint16(b, uint16(size))
}

// ParseProbeAnswer reads the size from the body of the answer to a probe. Any length other than 2
// bytes is [ErrMalformed].
func ParseProbeAnswer(body []byte) (size int, err error) {
	if len(body) != probeAnswerBody {
		return 0, ErrMalformed
	}
	return int(binary.LittleEndian.Uint16(body)), nil
}

const (
	// PartSize is the size of the header of a part in bytes.
	PartSize = 2
	// MaxParts is the maximum number of parts of a body.
	MaxParts = 4
)

// Part is the header of a part of a body. The parts of a body are in consecutive datagrams. The
// parts of a data datagram replace that datagram; its packet number is the number of the first
// part.
type Part struct {
	Reliable bool // whether the body is of the reliable kind, otherwise of the data kind
	Count    int  // number of parts of the body, 2 to MaxParts
	Index    int  // index of this part, below Count
	Offset   int  // offset of its first byte in the body, less than MaxDatagram
}

// AppendPart appends the header of a part.
func AppendPart(b []byte, p Part) []byte {
	v := uint16(p.Offset) | uint16(p.Index)<<11 | uint16(p.Count-1)<<13
	if p.Reliable {
		v |= 1 << 15
	}
	return binary.LittleEndian.AppendUint16(b, v)
}

// ParsePart reads the header of a part, and returns the data of the part, which is not empty. It
// returns [ErrMalformed] for an index not below the count, a count of one, bytes from [MaxDatagram]
// on, and a first part that does not begin the body.
func ParsePart(body []byte) (p Part, data []byte, err error) {
	if len(body) <= PartSize {
		return Part{}, nil, ErrMalformed
	}
	v := binary.LittleEndian.Uint16(body)
	p = Part{Reliable: v>>15 != 0, Count: int(v>>13&3) + 1, Index: int(v >> 11 & 3), Offset: int(v & (1<<11 - 1))}
	data = body[PartSize:]
	if p.Count < 2 || p.Index >= p.Count || p.Offset+len(data) > MaxDatagram || (p.Index == 0) != (p.Offset == 0) {
		return Part{}, nil, ErrMalformed
	}
	return p, data, nil
}
