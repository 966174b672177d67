package control

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Buffered is how an RPC's jitter buffer stands on the DS.
type Buffered struct {
	RPC uint8
	// Slack is how early frames come before their release on average, Target how early they should. On the wire they are
	// in tenths of a millisecond, Slack within 3.2 s and Target up to 6.5 s.
	Slack, Target time.Duration
	// Missing and Late count ticks without a frame and frames after their tick, modulo 2^16.
	Missing, Late uint16
}

const (
	bufferedSize = 9
	slackUnit    = 100 * time.Microsecond
	// MaxBuffered is the most of them in a message.
	MaxBuffered = 32
)

// Append appends it.
func (s *Buffered) Append(dst []byte) []byte {
	dst = append(dst, s.RPC)
	slack := max(math.MinInt16, min(s.Slack.Round(slackUnit)/slackUnit, math.MaxInt16))
	target := max(0, min(s.Target.Round(slackUnit)/slackUnit, math.MaxUint16))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(slack))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(target))
	dst = binary.LittleEndian.AppendUint16(dst, s.Missing)
	return binary.LittleEndian.AppendUint16(dst, s.Late)
}

// AppendSlack appends the type of a message that tells of so many buffers, at most MaxBuffered, and their number. They
// follow, each by its Append, and then acks.
func AppendSlack(dst []byte, n int) []byte { return append(dst, byte(Slack), byte(n)) }

// ParseSlack reads what follows the type: as many buffers as it says, appended to dst, and gives the acks that follow.
func ParseSlack(dst []Buffered, b []byte) (all []Buffered, acks []byte, err error) {
	if len(b) == 0 {
		return dst, nil, fmt.Errorf("%w: slack of nothing", ErrMalformed)
	}
	n := int(b[0])
	b = b[1:]
	if n == 0 || n > MaxBuffered || len(b) < n*bufferedSize {
		return dst, nil, fmt.Errorf("%w: slack of %d buffers in %d bytes, want 1 to %d of %d each", ErrMalformed, n, len(b), MaxBuffered, bufferedSize)
	}
	for range n {
		dst = append(dst, Buffered{
			RPC:     b[0],
			Slack:   time.Duration(int16(binary.LittleEndian.Uint16(b[1:]))) * slackUnit,
			Target:  time.Duration(binary.LittleEndian.Uint16(b[3:])) * slackUnit,
			Missing: binary.LittleEndian.Uint16(b[5:]),
			Late:    binary.LittleEndian.Uint16(b[7:]),
		})
		b = b[bufferedSize:]
	}
	return dst, b, nil
}
