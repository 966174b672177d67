package ds

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// sequencer is the sink of an RPC whose client repeats lost payloads. It delivers in sequence:
// frames after a missing one wait for it until its deadline. Only the shard's goroutine uses it.
type sequencer struct {
	sink     sink
	player   *Player
	binding  *binding
	schema   *schema.Schema
	deadline int           // maximum wait, in frames
	patience time.Duration // maximum wait as a time, in case no more frames arrive
	repairs  func() bool   // reports whether a lost payload can still arrive in time

	started   bool
	listed    bool           // the sequencer is in shard.sequencing
	next      uint64         // sequence of the next frame to deliver
	repairing uint64         // sequence up to which the client is known to repeat payloads
	waiting   []waitingFrame // by sequence number; elements beyond the length are reused
}

type waitingFrame struct {
	delivery rpcdelta.Delivery
	at       time.Time
}

// deliver delivers a frame after the waiting frames before it. If a missing frame before it can
// still arrive in time, the frame waits.
func (q *sequencer) deliver(p *Player, b *binding, d *rpcdelta.Delivery, at time.Time) error {
	if !q.started {
		q.started, q.next = true, d.Seq
	}
	if d.Late {
		q.repairing = max(q.repairing, q.next+repairMemory)
	}
	if d.Seq < q.next {
		if !p.server.cfg.Tuning.DeliverLate {
			return errDrop(Late)
		}
		return q.sink.deliver(p, b, d, at)
	}
	if d.Seq > q.next && (q.repairs() || d.Seq < q.repairing) {
		q.wait(d, at)
		if missing := q.next; d.Seq-missing > uint64(q.deadline) {
			q.release(q.waiting[0].delivery.Seq)
		}
		return nil
	}
	q.release(d.Seq)
	err := q.pass(d, at)
	q.release(q.next)
	return err
}

// wait inserts a frame into those that wait.
func (q *sequencer) wait(d *rpcdelta.Delivery, at time.Time) {
	n := len(q.waiting)
	if !q.listed {
		q.listed = true
		q.player.shard.sequencing = append(q.player.shard.sequencing, q)
	}
	if n == cap(q.waiting) {
		q.waiting = append(q.waiting, waitingFrame{})
	}
	q.waiting = q.waiting[:n+1]
	w := &q.waiting[n]
	frame := w.delivery.Frame
	if frame == nil {
		frame = q.schema.NewFrame()
	}
	frame.CopyFrom(d.Frame)
	w.delivery, w.at = *d, at
	w.delivery.Frame = frame
	for ; n > 0 && q.waiting[n-1].delivery.Seq > d.Seq; n-- {
		q.waiting[n-1], q.waiting[n] = q.waiting[n], q.waiting[n-1]
	}
}

// release delivers the waiting frames up to a sequence, and those that follow the last of them
// without a gap.
func (q *sequencer) release(upTo uint64) {
	done := 0
	for ; done < len(q.waiting); done++ {
		w := &q.waiting[done]
		if w.delivery.Seq > max(upTo, q.next) {
			break
		}
		if err := q.pass(&w.delivery, w.at); err != nil {
			q.player.dropFrame(q.binding, reason(err), 0)
		}
	}
	for i := done; i < len(q.waiting); i++ {
		q.waiting[i-done], q.waiting[i] = q.waiting[i], q.waiting[i-done]
	}
	q.waiting = q.waiting[:len(q.waiting)-done]
}

// pass delivers a frame to the next sink, with the number of frames missing before it.
func (q *sequencer) pass(d *rpcdelta.Delivery, at time.Time) error {
	next := *d
	next.Late, next.Missed = false, d.Seq-q.next
	q.next = d.Seq + 1
	return q.sink.deliver(q.player, q.binding, &next, at)
}

// expire delivers the frames that have waited long enough, and reports whether no others wait.
func (q *sequencer) expire(now time.Time) (done bool) {
	for len(q.waiting) > 0 && now.Sub(q.waiting[0].at) >= q.patience {
		q.release(q.waiting[0].delivery.Seq)
	}
	q.listed = len(q.waiting) > 0
	return !q.listed
}

// flush delivers all waiting frames.
func (q *sequencer) flush() {
	if n := len(q.waiting); n > 0 {
		q.release(q.waiting[n-1].delivery.Seq)
	}
}
