package wire

import "encoding/binary"

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
