package wire

import "encoding/binary"

// ChallengeSize is the size of the random data of a challenge, and of its echo, in bytes.
const ChallengeSize = 8

// ParseChallenge reads the body of a challenge or a response: any 8 bytes; any other length is
// [ErrMalformed].
func ParseChallenge(body []byte) (data [ChallengeSize]byte, err error) {
	if len(body) != ChallengeSize {
		return data, ErrMalformed
	}
	return [ChallengeSize]byte(body), nil
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
