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

// repairs returns how many times a payload can be repeated by the deadline of all its frames after
// its ack did not arrive. It is 0 while acks do not show losses, and while no payload of the last
// two deadlines was acked, because nothing arrives then.
func (t *ackTracker) repairs() int {
	a := &t.repair.acks
	silent := t.next-t.resolved > 2*uint64(t.deadline)
	if t.repair.payloads == nil || t.redundancy.setting != RedundancyAuto || a.periods == 0 || a.prompt < promptShare || silent {
		return 0
	}
	return max(0, min(t.deadline, MaxRepairAge)-t.batch-a.usual())
}

// overdue returns how many more times payload n is to be repeated because it is lost or its ack is
// overdue, and the number of ticks after this one in which that helps all frames that only this
// payload brings. Only frames before the given one count.
func (t *ackTracker) overdue(n, before uint64) (copies, left int) {
	f := t.sent.Get(n)
	if f == nil || f.fresh == 0 || t.repair.payloads.Get(n) == nil || n >= t.resolved && int(t.next-1-n) <= t.repair.acks.usual() {
		return 0, 0
	}
	left = t.deadline
	for q := n + 1 - uint64(f.fresh); q <= n && q < before; q++ {
		f, age := t.sent.Get(q), int(t.next-1-q)
		planned := t.redundancy.limited(f.planned)
		if f.delivered || f.payloads >= planned || age > t.deadline {
			continue
		}
		copies = max(copies, int(planned-f.payloads))
		left = min(left, t.deadline-age)
	}
	return copies, left
}

// repairable returns the oldest payload that may be repeated.
func (t *ackTracker) repairable() uint64 {
	age := uint64(min(t.deadline, MaxRepairAge))
	return max(t.opened, t.next-1-min(age, t.next-1))
}

// repairIsDue reports whether a payload has to be repeated in this tick, because it could otherwise
// not be repeated as often as planned.
func (t *ackTracker) repairIsDue() bool {
	if t.repairs() == 0 {
		return false
	}
	for n := t.repairable(); n < t.next; n++ {
		if copies, left := t.overdue(n, t.next); copies > left {
			return true
		}
	}
	return false
}

// AppendRepair appends a payload that is to be repeated because its ack is overdue, or returns dst
// unchanged if there is none. Call it after [Encoder.AppendHeld] until then; the payloads may leave
// in one datagram. They have at most RedundancyBytes in all. The decoder must have a RepairTime. It
// does not allocate once warm.
func (e *Encoder) AppendRepair(dst []byte) []byte {
	r := &e.repair
	if e.repairs() == 0 {
		return dst
	}
	oldest := e.next - 1 - uint64(e.sent.Get(e.next-1).older) // of the payload in the same datagram
	for r.next = max(r.next, e.repairable()); r.next < oldest; {
		n := r.next
		r.next++
		if copies, _ := e.overdue(n, oldest); copies == 0 {
			continue
		}
		if b := r.payloads.Get(n); b != nil && len(*b) <= r.room {
			r.room -= len(*b)
			e.sent.Get(n).repaired = true
			for q := n + 1 - uint64(e.sent.Get(n).fresh); q <= n; q++ {
				e.sent.Get(q).payloads++
			}
			return append(dst, *b...)
		}
	}
	return dst
}
