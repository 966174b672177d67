package snapshot

import (
	"fmt"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/seq"
)

// Receipts records which snapshots were sent to one client, and which of them the client acked. The
// zero value is ready. Not safe for concurrent use.
type Receipts struct {
	next        uint64 // number after the newest sent snapshot
	sent, acked uint64 // bit i is for snapshot next-1-i
	used        uint64 // newest snapshot that was a baseline, or 0
	kept        uint64 // the client may have discarded snapshots before this number
	since       uint64 // first number of the epoch; older snapshots are not baselines
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
		r.kept = max(r.kept, r.used-min(r.used, MaxAge(uint64(b.Step))))
	}
}

// Baselines returns the distances from snapshot n to the baselines that the client has. Bit i
// stands for distance i. full contains only baselines whose references at the given step the client
// has too; bare contains all.
//
// A client that decodes a payload without references may discard the sets that would be references
// at a step above 1. If full is empty for this reason alone, and snapshots are sent at intervals of
// step, bare excludes the baselines that are newer than the last one used, until the client has a
// baseline with all references.
func (r *Receipts) Baselines(n uint64, step int) (full, bare uint64) {
	if n < r.next || r.next <= r.since {
		return 0, 0
	}
	bare = r.acked & seq.Mask(min(r.next-r.since, Ring))
	full = bare
	for _, lag := range References {
		full &= bare >> (lag * step)
	}
	oldest := uint64(Ring - 1 - maxLag*step)
	if r.used > 0 {
		oldest = min(oldest, n-r.used+lateBaselines)
	}
	from, within := n+1-r.next, seq.Mask(oldest+1)
	full, bare = full<<from&within, bare<<from&within
	decoded, before := full, uint64(maxLag*step)
	if full = 0; n-r.kept >= before {
		full = decoded & seq.Mask(n-r.kept-before+1)
	}
	if full == 0 && decoded != 0 && r.used > 0 && r.regular(step) {
		// The client will have all references of snapshot r.kept+before. Wait for it, unless it
		// will be too old when its ack arrives.
		delay := uint64(bits.TrailingZeros64(bare))
		if older := bare &^ seq.Mask(n-r.used); older != 0 && r.kept+before+delay <= r.used+Ring-1-before {
			bare = older
		}
	}
	return full, bare
}

// Acked returns the distances from snapshot n of all snapshots that the client has acked, some of
// which it may have discarded since.
func (r *Receipts) Acked(n uint64) uint64 {
	if n < r.next || r.next <= r.since {
		return 0
	}
	return r.acked & seq.Mask(min(r.next-r.since, Ring)) << (n + 1 - r.next)
}

// NewestAcked returns the number of the newest snapshot that the client has acked, if it is one of
// the last [Ring] ones.
func (r *Receipts) NewestAcked() (n uint64, ok bool) {
	return r.next - 1 - uint64(bits.TrailingZeros64(r.acked)), r.acked != 0
}

// Received returns the numbers of the snapshots that the client shows, ascending: those among the
// last [Ring] that it acked, and all that were sent after the newest acked one.
func (r *Receipts) Received(dst []uint64) []uint64 {
	since := seq.Mask(uint64(bits.TrailingZeros64(r.acked)))
	for m := r.acked | r.sent&since; m != 0; {
		age := bits.Len64(m) - 1
		m &^= 1 << age
		dst = append(dst, r.next-1-uint64(age))
	}
	return dst
}

// stepWindow is the number of snapshots over which Step is a mean, so that one omitted snapshot
// does not change it.
const stepWindow = 16

// Step returns the reference step that matches the mean interval between sent snapshots, 1 to
// maxStep.
func (r *Receipts) Step() int {
	n := int(min(r.next, stepWindow))
	step := max(1, min(n/max(1, bits.OnesCount64(r.sent&seq.Mask(stepWindow))), maxStep))
	if step == 2 && r.regular(3) { // 6 of 16 snapshots have a mean interval below 3
		return 3
	}
	return step
}

// everyStep has a bit for each multiple of the index.
var everyStep = [maxStep + 1]uint64{1: 0xffff, 2: 0x5555, 3: 0x9249, 4: 0x1111}

// regular reports whether the newest sent snapshots are multiples of step apart.
func (r *Receipts) regular(step int) bool {
	return r.sent&seq.Mask(stepWindow)&^everyStep[step] == 0
}

// Baseline returns the newest baseline for snapshot n, preferably with references.
func (r *Receipts) Baseline(n uint64) Baseline {
	step := r.Step()
	full, bare := r.Baselines(n, step)
	switch {
	case full != 0:
		return Baseline{Distance: bits.TrailingZeros64(full), Step: step}
	case bare != 0:
		return Baseline{Distance: bits.TrailingZeros64(bare)}
	}
	return r.Keyframe()
}

// Resets returns the number of resets that the client requested.
func (r *Receipts) Resets() uint64 { return r.resets }

// Keyframe returns the baseline of a keyframe: the initial set, or an empty one if the client does
// not have the initial set.
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
		r.epoch, r.since, r.used, r.kept = a.Epoch, r.next, 0, 0
		r.resets++
	}
	return acked, nil
}
