package rpcdelta

import "github.com/uplink-rpc/uplink/ringcache"

// repair sends payloads again, unchanged, if their acks are overdue and the deadline of their
// frames permits. It costs copies of lost payloads only, whereas redundancy costs copies of all
// payloads. Time is counted in frames.
type repair struct {
	payloads *ringcache.Ring[[]byte] // sent payloads by sequence; nil if there is no repair
	next     uint64                  // next payload that AppendRepair examines
	limit    int                     // maximum number of bytes repeated in a tick
	room     int                     // bytes that may still be repeated in this tick
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

// ackTimer measures the delay of acks.
type ackTimer struct {
	longest [2]int  // longest delay of an ack, in the current and the previous period
	acks    int     // acks in the current period
	periods int     // number of periods so far, at most 2
	prompt  float64 // share of acked payloads with an ack no later than the usual time
}

const (
	ackPeriod = 32
	// promptShare is the minimum share of prompt acks. Below it, a missing ack does not show that
	// the payload was lost, because acks are lost too.
	promptShare  = 0.7
	promptMemory = 32
)

// observe adds an ack that arrived delay frames after its payload was sent.
func (t *ackTimer) observe(delay int) {
	t.longest[0] = max(t.longest[0], delay)
	if t.acks++; t.acks == ackPeriod {
		t.longest[0], t.longest[1], t.acks = 0, t.longest[0], 0
		t.periods = min(t.periods+1, 2)
	}
}

// resolve adds a payload that was acked delay frames after it was sent.
func (t *ackTimer) resolve(delay int) {
	prompt := 0.0
	if delay <= t.usual() {
		prompt = 1
	}
	t.prompt += (prompt - t.prompt) / promptMemory
}

// usual returns the time within which nearly all acks arrive, in frames.
func (t *ackTimer) usual() int { return max(t.longest[0], t.longest[1]) }
