package rpcdelta

import "github.com/uplink-rpc/uplink/ringcache"

// repair repeats payloads whose acks are overdue, as they were sent, if that is possible before the
// deadline of their frames. It costs the copies of lost payloads only, where redundancy costs
// copies of all. Time is counted in frames.
type repair struct {
	payloads *ringcache.Ring[[]byte] // sent payloads by sequence; nil if there is no repair
	next     uint64                  // next payload that AppendRepair looks at
	limit    int                     // maximum number of bytes repeated in a tick
	room     int                     // what is left of it
	acks     ackTimer
}

func newRepair(c *EncoderConfig) repair {
	if !c.Repair || c.Deadline == 0 || !c.combines() {
		return repair{}
	}
	return repair{payloads: ringcache.New[[]byte](MaxRepairAge + 1), limit: c.RedundancyBytes}
}

// store stores payload n, unless it is too large to be repeated.
func (r *repair) store(n uint64, payload []byte) {
	if r.payloads != nil && len(payload) <= r.limit {
		slot := r.payloads.Put(n)
		*slot = append((*slot)[:0], payload...)
	}
}

// ackTimer measures how long acks take.
type ackTimer struct {
	longest [2]int  // of the acks of this period and of the one before, from a payload to its ack
	acks    int     // acks of this period
	periods int     // at most 2
	prompt  float64 // share of the acked payloads whose ack took no longer
}

const (
	ackPeriod = 32
	// promptShare is the minimum share of prompt acks with which the lack of an ack means that a
	// payload was lost; the acks themselves are lost too.
	promptShare  = 0.7
	promptMemory = 32
)

// observe adds an ack of a payload that left delay frames ago.
func (t *ackTimer) observe(delay int) {
	t.longest[0] = max(t.longest[0], delay)
	if t.acks++; t.acks == ackPeriod {
		t.longest[0], t.longest[1], t.acks = 0, t.longest[0], 0
		t.periods = min(t.periods+1, 2)
	}
}

// resolve adds a payload that was acked delay frames after it left.
func (t *ackTimer) resolve(delay int) {
	prompt := 0.0
	if delay <= t.usual() {
		prompt = 1
	}
	t.prompt += (prompt - t.prompt) / promptMemory
}

// usual returns the time within which nearly all acks arrive.
func (t *ackTimer) usual() int { return max(t.longest[0], t.longest[1]) }
