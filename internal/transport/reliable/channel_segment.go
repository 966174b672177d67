package reliable

import (
	"encoding/binary"
	"iter"

	kcp "github.com/xtaci/kcp-go/v5"
)

// Offsets in the header of a segment.
const (
	offCommand  = 4
	offFragment = 5
	offWindow   = 6
	offTime     = 8
	offNumber   = kcp.IKCP_SN_OFFSET
	offUnacked  = 16
	offLength   = 20
)

func number(b []byte) uint32 { return binary.LittleEndian.Uint32(b[offNumber:]) }

func unacked(b []byte) uint32 { return binary.LittleEndian.Uint32(b[offUnacked:]) }

func timestamp(b []byte) uint32 { return binary.LittleEndian.Uint32(b[offTime:]) }

func length(b []byte) int { return int(binary.LittleEndian.Uint32(b[offLength:])) }

// segmentsOf iterates over the segments of a valid body.
func segmentsOf(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := SegmentSize + length(b)
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

// Conversation returns the conversation number of the segment that b starts with, or 0 if b is too
// short for one.
func Conversation(b []byte) uint32 {
	if len(b) < SegmentSize {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// maxData returns the maximum number of bytes of the stream in a segment.
func (c *Channel) maxData() int { return int(c.cfg.MTU) - kcp.IKCP_OVERHEAD }

// valid reports whether b consists of one or more complete segments of this channel. Each must have
// a command, fragment number and length that a channel can produce. KCP checks less and stops in
// the middle of a datagram, so acks of the first half would accumulate.
func (c *Channel) valid(b []byte) bool {
	if len(b) == 0 || len(b) > int(c.cfg.MTU) {
		return false
	}
	for len(b) > 0 {
		if len(b) < kcp.IKCP_OVERHEAD || binary.LittleEndian.Uint32(b) != c.cfg.Conv {
			return false
		}
		length := uint64(binary.LittleEndian.Uint32(b[offLength:]))
		if length > uint64(len(b)-kcp.IKCP_OVERHEAD) || !c.validCommand(b, length) || !c.validAcks(b) {
			return false
		}
		b = b[kcp.IKCP_OVERHEAD+length:]
	}
	return true
}

// validAcks reports whether the segment at the start of b acknowledges only segments that were
// sent. KCP would also accept acknowledgments of segments that it has not sent yet.
func (c *Channel) validAcks(b []byte) bool {
	base := c.numbers.sentBase
	return c.outstanding.sentAll(unacked(b)-base, number(b)-base, b[offCommand] == kcp.IKCP_CMD_ACK)
}

// validCommand checks the command, fragment number and length of the segment at the start of b.
func (c *Channel) validCommand(b []byte, length uint64) bool {
	switch b[offCommand] {
	case kcp.IKCP_CMD_PUSH:
		return length > 0 && b[offFragment] == 0
	case kcp.IKCP_CMD_ACK, kcp.IKCP_CMD_WASK, kcp.IKCP_CMD_WINS:
		return length == 0
	default:
		return false
	}
}
