package reliable

import (
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
)

// MaxTransmissions is the maximum number of transmissions of a segment, after which the channel
// fails.
const MaxTransmissions = 20

// outstanding contains the sent segments from the first unacknowledged one on. KCP has this state
// too, but does not export it, and also counts segments that the budget still holds back.
type outstanding struct {
	first uint32              // lowest number such that all segments before it were acknowledged
	slots [window]transmitted // indexed by sequence number modulo window, the maximum number of segments
}

type transmitted struct {
	number      uint32
	size        uint16        // size of the segment's data in bytes
	ends        uint16        // number of messages that end in the segment
	count       uint8         // number of transmissions; 0: the slot is free
	acked       bool          // acknowledged selectively: earlier segments may be missing
	first, last time.Duration // times of transmissions since the start of the channel
}

// freely is the number of transmissions of each segment without new acknowledgments. During an
// outage only the oldest segment is transmitted more often, so that the others have transmissions
// left after the outage.
const freely = 5

// earliest returns the minimum time from the first to the n-th transmission of a segment while the
// peer acknowledges nothing new. KCP's own backoff would send a segment 20 times in 3 seconds if
// the round-trip time is 1 ms. The intervals grow with the square of n, up to a sixth of patience.
// So a segment is sent at most 11 times within patience, and the 20th time after 2.3 times patience
// at the earliest. This leaves transmissions for the time after an outage.
func earliest(n uint8, patience time.Duration) time.Duration {
	const steep = 6 // number of transmissions after which the intervals stay constant
	k := time.Duration(n - 1)
	if k <= steep {
		return patience * k * k * k / 1000
	}
	return earliest(steep+1, patience) + (k-steep)*patience/6
}

// due reports whether the data segment that b starts with may be sent now. The last new
// acknowledgment arrived at the time progress. If that was after the last transmission of the
// segment, the path works, and KCP decides.
func (o *outstanding) due(now, progress, patience time.Duration, b []byte) bool {
	t := o.slot(number(b))
	if t.count == 0 || t.number != number(b) || progress > t.last {
		return true
	}
	return now >= t.first+earliest(t.count+1, patience) && (t.count < freely || o.oldest(t))
}

func (o *outstanding) oldest(t *transmitted) bool {
	for i := range o.slots {
		if s := &o.slots[i]; s.count > 0 && !s.acked && int32(s.number-t.number) < 0 {
			return false
		}
	}
	return true
}

// sent records a transmission of the data segment at the start of b, and returns the number of its
// transmissions so far. ends is the number of messages that end in the segment.
func (o *outstanding) sent(now time.Duration, b []byte, ends uint16) uint8 {
	t := o.slot(number(b))
	if t.count == 0 || t.number != number(b) {
		*t = transmitted{number: number(b), size: uint16(length(b)), ends: ends, first: now}
	}
	t.count++
	t.last = now
	return t.count
}

// sentAll reports whether this end has sent all segments that a peer's segment acknowledges: the
// segments before una and, if alone is set, segment sn. A nil outstanding has sent none.
func (o *outstanding) sentAll(una, sn uint32, alone bool) bool {
	if o == nil {
		return int32(una) <= 0 && (!alone || int32(sn) < 0)
	}
	for n := o.first; int32(una-n) > 0; n++ { // ends after at most window steps
		if !o.has(n) {
			return false
		}
	}
	return !alone || int32(sn-o.first) < 0 || o.has(sn)
}

func (o *outstanding) has(number uint32) bool {
	t := o.slot(number)
	return t.count > 0 && t.number == number
}

// acknowledged applies the acknowledgments in the peer's segment at the start of b, as KCP does. It
// returns the numbers of newly acknowledged bytes and messages.
func (o *outstanding) acknowledged(b []byte) (bytes, messages int) {
	una := unacked(b)
	if int32(una-o.first) > 0 {
		o.first = una
	}
	for i := range o.slots {
		t := &o.slots[i]
		if t.count == 0 || int32(una-t.number) <= 0 {
			continue
		}
		if !t.acked {
			bytes += int(t.size)
			messages += int(t.ends)
		}
		t.count = 0
	}
	if t := o.slot(number(b)); b[offCommand] == kcp.IKCP_CMD_ACK && t.count > 0 && t.number == number(b) && !t.acked {
		t.acked = true
		bytes += int(t.size)
		messages += int(t.ends)
	}
	return bytes, messages
}

func (o *outstanding) held() int {
	n := 0
	for i := range o.slots {
		if o.slots[i].count > 0 {
			n++
		}
	}
	return n
}

func (o *outstanding) slot(number uint32) *transmitted {
	return &o.slots[number%window]
}

// An end may send [creditPerByte] bytes for each newly acknowledged byte of its messages. Without
// acknowledgments it may send 64 KiB in any second: the base burst and one second of the base rate.
const (
	creditPerByte = 3
	baseRate      = 32 << 10 // bytes per second
	baseBurst     = 32 << 10 // bytes
	// maxBudget is the maximum of the budget in bytes. It exceeds a full window of the largest
	// segments.
	maxBudget = 96 << 10
)

// budget is the number of bytes that an end may send now, including headers down to IP. In a period
// of T seconds it sends at most baseRate*T + creditPerByte times the newly acknowledged bytes, plus
// the budget at its start: baseBurst at the start of a session, at most maxBudget later.
type budget struct {
	bytes float64
	at    time.Time // time of the last refill
}

// refill adds the base rate for the time since the last call. Earlier times add nothing.
func (b *budget) refill(now time.Time) {
	passed := max(now.Sub(b.at), 0)
	b.at = b.at.Add(passed)
	if b.bytes < baseBurst {
		b.bytes = min(b.bytes+passed.Seconds()*baseRate, baseBurst)
	}
}

func (b *budget) credit(n int) { b.bytes = min(b.bytes+float64(creditPerByte*n), maxBudget) }

// take reports whether n bytes may be sent, and deducts them if so.
func (b *budget) take(n int) bool {
	if float64(n) > b.bytes {
		return false
	}
	b.bytes -= float64(n)
	return true
}
