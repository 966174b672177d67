package reliable

import (
	"encoding/binary"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
)

// MaxTransmissions is how many times a segment is sent. If the peer has not acknowledged it by then, the channel fails.
const MaxTransmissions = 20

// outstanding is the segments that were sent and that the peer has not acknowledged with all before them, by sequence
// number modulo window: KCP has at most window of these at a time. KCP keeps the same state, but does not export it.
type outstanding [window]transmitted

// transmitted is one of these segments.
type transmitted struct {
	number uint32
	size   int       // bytes of its message
	count  int       // transmissions; 0: the slot is free
	acked  bool      // selectively: segments before it may be missing
	first  time.Time // when it was sent first
}

// mayRetransmit returns the time since the first transmission before which a segment is not sent for the n-th time.
// The intervals grow with the square of n, and the last transmission comes half as long again after the first as
// patience, whatever KCP has measured. So a peer that is out of reach for less than patience is not given up. KCP's own
// backoff would send a segment 20 times in 3 seconds after a round trip time of a millisecond was measured.
func mayRetransmit(n int, patience time.Duration) time.Duration {
	const last = MaxTransmissions - 1
	k := time.Duration(n - 1)
	return patience * k * k * k * 3 / (2 * last * last * last)
}

// due reports whether the data segment that b starts with may be sent now.
func (o *outstanding) due(now time.Time, b []byte, patience time.Duration) bool {
	t := o.slot(number(b))
	return t.count == 0 || t.number != number(b) || !now.Before(t.first.Add(mayRetransmit(t.count+1, patience)))
}

// sent notes that the data segment that b starts with is sent, and returns how many times it was sent so far.
func (o *outstanding) sent(now time.Time, b []byte) int {
	t := o.slot(number(b))
	if t.count == 0 || t.number != number(b) {
		*t = transmitted{number: number(b), size: length(b), first: now}
	}
	t.count++
	return t.count
}

// acknowledged notes what the segment of the peer that b starts with acknowledges, as KCP does, and returns how many
// bytes of messages were not acknowledged before.
func (o *outstanding) acknowledged(b []byte) (bytes int) {
	una := binary.LittleEndian.Uint32(b[offUnacked:])
	for i := range o {
		t := &o[i]
		if t.count == 0 || int32(una-t.number) <= 0 {
			continue
		}
		if !t.acked {
			bytes += t.size
		}
		t.count = 0
	}
	if t := o.slot(number(b)); b[offCommand] == kcp.IKCP_CMD_ACK && t.count > 0 && t.number == number(b) && !t.acked {
		t.acked = true
		bytes += t.size
	}
	return bytes
}

// held returns how many segments there are.
func (o *outstanding) held() int {
	n := 0
	for i := range o {
		if o[i].count > 0 {
			n++
		}
	}
	return n
}

func (o *outstanding) slot(number uint32) *transmitted { return &o[number%window] }
