package snapshot

import (
	"fmt"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/seq"
)

// Receipts records which snapshots were sent to one client, and which of them its acks say that it
// has decoded. The zero value is ready. Not safe for concurrent use.
type Receipts struct {
	next        uint64 // the number after the newest that was sent
	sent, acked uint64 // bit i: number next-1-i
	used        uint64 // the newest baseline, or 0
	since       uint64 // the first number of the epoch; older snapshots are no baselines
	epoch       uint8
	resets      uint64
	noInitial   bool
}

// Sent records that snapshot n was sent, coded against b. Numbers ascend.
func (r *Receipts) Sent(n uint64, b Baseline) {
	shift := n + 1 - r.next
	r.sent, r.acked, r.next = r.sent<<shift|1, r.acked<<shift, n+1
	if b.Distance > 0 {
		r.used = max(r.used, n-uint64(b.Distance))
	}
}

// Baselines returns the distances from snapshot n of all baselines that the client has, with
// references and bare: bit i is set for distance i.
func (r *Receipts) Baselines(n uint64) (full, bare uint64) {
	if n < r.next {
		return 0, 0
	}
	has := r.acked
	if r.next > r.since {
		has &= seq.Mask(min(r.next-r.since, Ring))
	} else {
		has = 0
	}
	full = has
	for _, lag := range refLags {
		full &= has >> lag
	}
	oldest := uint64(MaxDistance)
	if r.used > 0 {
		oldest = min(oldest, n-r.used+lateBaselines)
	}
	from, within := n+1-r.next, seq.Mask(oldest+1)
	return full << from & within, has << from & within
}

// Baseline returns the newest baseline for snapshot n.
func (r *Receipts) Baseline(n uint64) Baseline {
	full, bare := r.Baselines(n)
	switch {
	case full != 0:
		return Baseline{Distance: bits.TrailingZeros64(full)}
	case bare != 0:
		return Baseline{Distance: bits.TrailingZeros64(bare), Bare: true}
	}
	return r.Keyframe()
}

// Keyframe returns the baseline that every client has.
func (r *Receipts) Keyframe() Baseline { return Baseline{Empty: r.noInitial} }

// Ack applies an ack of the client's decoder and returns the number of snapshots that it acks for
// the first time. Old and repeated acks have no effect. An ack of a snapshot that was never sent is
// [ErrAck] and has no effect either. An ack of another epoch discards all baselines, but at most
// once in [Ring] snapshots.
func (r *Receipts) Ack(a Ack) (acked int, err error) {
	if !a.None {
		w := a.wire()
		behind := w.Behind(r.next - 1)
		if behind >= r.next {
			return 0, fmt.Errorf("%w: snapshot %d of %d", ErrAck, a.Newest, r.next)
		}
		if behind < Ring {
			window, newest := (a.Window<<1|1)<<behind, r.next-1-behind
			if window&^r.sent != 0 || newest < Ring && a.Window>>newest != 0 {
				return 0, fmt.Errorf("%w: snapshot %d, or one before it, was not sent", ErrAck, a.Newest)
			}
			acked = bits.OnesCount64(window &^ r.acked)
			r.acked |= window
		}
	}
	r.noInitial = r.noInitial || a.NoInitial
	if a.Epoch != r.epoch && (r.resets == 0 || r.next >= r.since+Ring) {
		r.epoch, r.since, r.used = a.Epoch, r.next, 0
		r.resets++
	}
	return acked, nil
}
