package reliable

import (
	"encoding/binary"

	kcp "github.com/xtaci/kcp-go/v5"
)

// numbers translates between the sequence numbers of a state machine, which start at 0, and the
// numbers on the wire. The latter continue when a new state machine replaces a released one.
type numbers struct {
	// Numbers on the wire of the state machine's segment 0, in both directions.
	sentBase, receivedBase uint32

	// In numbers of the state machine:
	sent     uint32 // the next segment to send
	received uint32 // the next segment to receive, as of the last acknowledgment
	highest  uint32 // one after the highest received segment
}

// input translates the received segment that b starts with.
func (n *numbers) input(b []byte) {
	put(b[offUnacked:], unacked(b)-n.sentBase)
	if b[offCommand] != kcp.IKCP_CMD_PUSH {
		put(b[offNumber:], number(b)-n.sentBase)
		return
	}
	put(b[offNumber:], number(b)-n.receivedBase)
	if next := number(b) + 1; int32(next-n.highest) > 0 {
		n.highest = next
	}
}

// emitted records the segment that b starts with, which the state machine has sent.
func (n *numbers) emitted(b []byte) {
	n.received = unacked(b)
	if next := number(b) + 1; b[offCommand] == kcp.IKCP_CMD_PUSH && int32(next-n.sent) > 0 {
		n.sent = next
	}
}

// output translates the segment that b starts with, which is sent to the peer.
func (n *numbers) output(b []byte) {
	put(b[offUnacked:], unacked(b)+n.receivedBase)
	if b[offCommand] == kcp.IKCP_CMD_PUSH {
		put(b[offNumber:], number(b)+n.sentBase)
	} else {
		put(b[offNumber:], number(b)+n.receivedBase)
	}
}

// complete reports whether no received segment waits for an earlier one. If this end has
// acknowledged nothing, it has received nothing.
func (n *numbers) complete() bool { return n.received == n.highest }

// restart sets the numbers for a new state machine.
func (n *numbers) restart() {
	*n = numbers{sentBase: n.sentBase + n.sent, receivedBase: n.receivedBase + n.received}
}

func put(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
