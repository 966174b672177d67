package message

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Buffered is a report about the jitter buffer of an RPC on the DS.
type Buffered struct {
	RPC uint8
	// Slack is the mean time between the arrival of a frame and its release. Target is the slack
	// that the buffer aims for. On the wire both have a resolution of 0.1 ms; Slack is within ±3.2
	// s, Target within 0 to 6.5 s.
	Slack, Target time.Duration
	// Rate is the measured rate of the DS's ticks, 1 if they take their nominal time. On the wire
	// it has a resolution of 1/10,000 and is within 0.25 to 2.
	Rate float64
	// Missing counts ticks without a frame. Late counts frames that arrived after their tick. Both
	// are modulo 2^16.
	Missing, Late uint16
}

const (
	// BufferedSize is the size of a report in bytes.
	BufferedSize = 11
	slackUnit    = 100 * time.Microsecond
	rateUnits    = 10_000 // wire units of rate 1
	// minRate and maxRate bound rates, in wire units.
	minRate, maxRate = 2500, 20000
	// MaxBuffered is the maximum number of reports in a message.
	MaxBuffered = 24
)

// Append appends the report.
func (s *Buffered) Append(dst []byte) []byte {
	dst = append(dst, s.RPC)
	slack := max(math.MinInt16, min(s.Slack.Round(slackUnit)/slackUnit, math.MaxInt16))
	target := max(0, min(s.Target.Round(slackUnit)/slackUnit, math.MaxUint16))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(slack))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(target))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(max(minRate, min(math.Round(s.Rate*rateUnits), maxRate))))
	dst = binary.LittleEndian.AppendUint16(dst, s.Missing)
	return binary.LittleEndian.AppendUint16(dst, s.Late)
}

// AppendSlack appends the type of a message and the number of its reports n, at most MaxBuffered.
// The caller appends the reports and then acks.
func AppendSlack(dst []byte, n int) []byte { return append(dst, byte(Slack), byte(n)) }

// ParseSlack parses a message without its type. It appends the reports to dst and returns the acks
// that follow them.
func ParseSlack(dst []Buffered, b []byte) (all []Buffered, acks []byte, err error) {
	if len(b) == 0 {
		return dst, nil, fmt.Errorf("%w: no reports about jitter buffers", ErrMalformed)
	}
	n := int(b[0])
	b = b[1:]
	if n == 0 || n > MaxBuffered || len(b) < n*BufferedSize {
		return dst, nil, fmt.Errorf("%w: %d reports about jitter buffers in %d bytes, want 1 to %d of %d bytes each", ErrMalformed, n, len(b), MaxBuffered, BufferedSize)
	}
	for range n {
		rate := binary.LittleEndian.Uint16(b[5:])
		if rate < minRate || rate > maxRate {
			return dst, nil, fmt.Errorf("%w: a rate of %d/10000, want 0.25 to 2", ErrMalformed, rate)
		}
		dst = append(dst, Buffered{
			RPC:     b[0],
			Slack:   time.Duration(int16(binary.LittleEndian.Uint16(b[1:]))) * slackUnit,
			Target:  time.Duration(binary.LittleEndian.Uint16(b[3:])) * slackUnit,
			Rate:    float64(rate) / rateUnits,
			Missing: binary.LittleEndian.Uint16(b[7:]),
			Late:    binary.LittleEndian.Uint16(b[9:]),
		})
		b = b[BufferedSize:]
	}
	return dst, b, nil
}
