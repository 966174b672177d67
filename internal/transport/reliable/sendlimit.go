package reliable

import (
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
)

// MaxTransmissions is the maximum number of transmissions of a segment, after which the channel
// fails.
const MaxTransmissions = 20

// outstanding contains the sent segments from the first unacknowledged one on. KCP has the same
// state, but does not export it. KCP also has segments that the budget did not let pass yet.
type outstanding struct {
	first uint32              // the lowest number that was not acknowledged with all before it
	slots [window]transmitted // by sequence number modulo window, the maximum number of them
}

type transmitted struct {
	number      uint32
	size        uint16        // bytes of its data
	ends        uint16        // messages that end in it
	count       uint8         // transmissions; 0: the slot is free
	acked       bool          // selectively: segments before it may be missing
	first, last time.Duration // times of transmissions since the start of the channel
}

// freely is the number of transmissions of a segment without new acknowledgments. During an outage
// only the oldest segment is sent more often, so that the others have transmissions left after it.
const freely = 5

// earliest returns the minimum time from the first to the n-th transmission of a segment while the
// peer acknowledges nothing new. KCP's own backoff would send it 20 times in 3 seconds after a
// round-trip time of 1 ms. The intervals grow with the square of n, up to a sixth of patience. So a
// segment is sent at most 11 times within patience, and for the 20th time not before 2.3 times
// patience: after an outage it has transmissions left.
func earliest(n uint8, patience time.Duration) time.Duration {
	const steep = 6 // transmissions until the intervals are equal
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

// sent records a transmission of the data segment that b starts with, and returns the number of its
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

// sentAll reports whether all segments were sent that a peer's segment acknowledges: the segments
// before una, and segment sn if alone is set. A nil outstanding has sent none.
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

// acknowledged records the acknowledgments in the peer's segment that b starts with, as KCP does,
// and returns the numbers of newly acknowledged bytes and messages.
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

// An end may send [creditPerByte] bytes for each newly acknowledged byte of its messages, and 64
// KiB in any second without acknowledgments: the base burst and one second of the base rate.
const (
	creditPerByte = 3
	baseRate      = 32 << 10 // bytes per second
	baseBurst     = 32 << 10 // bytes
	// maxBudget is the maximum of the budget in bytes. A full window of the largest segments takes
	// less.
	maxBudget = 96 << 10
)

// budget is the number of bytes that an end may send now, including headers down to IP. In a period
// of T seconds it sends at most baseRate*T + creditPerByte times the newly acknowledged bytes, plus
// the budget at its start: baseBurst at the start of a session, at most maxBudget later.
type budget struct {
	bytes float64
	at    time.Time // of the last refill
}

// refill adds the base rate since the last call. A time before that of the last call adds nothing.
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
