package interpolate

import (
	"iter"
	"time"
)

// Sample is the world at one time. Its slices are reused when it is filled again.
type Sample[T any] struct {
	// Time is the server time.
	Time time.Duration
	// IDs ascend; Objects[i] has the id IDs[i].
	IDs     []uint32
	Objects []T
	// Starved reports that Time is after the newest snapshot: objects stand still, or are
	// extrapolated for Config.Extrapolate.
	Starved bool
}

// Sample sets out to the world to show at now. It combines Play and At.
func (b *Buffer[T]) Sample(now time.Duration, out *Sample[T]) bool {
	t, ok := b.Play(now)
	return ok && b.At(t, out)
}

// At sets out to the world at server time t and reports whether there is a snapshot. The objects
// are those of the last snapshot up to t, with their poses interpolated to the next one; before the
// oldest snapshot they are those of the oldest. An object that the next snapshot lacks, or that
// teleports in between, does not move until the time of the next snapshot. If the time between both
// snapshots exceeds Config.Gap, no object moves until then.
func (b *Buffer[T]) At(t time.Duration, out *Sample[T]) bool {
	if len(b.held) == 0 {
		return false
	}
	at, until := b.bracket(t)
	out.Time, out.Starved = t, t > b.held[len(b.held)-1].time
	from := b.held[at]
	if b.cfg.Method == Nearest && until != at {
		if to := b.held[until]; to.time-from.time <= b.cfg.Gap && to.time-t < t-from.time {
			from = to
		}
	}
	out.IDs = append(out.IDs[:0], from.ids...)
	out.Objects = append(out.Objects[:0], from.objects...)
	switch {
	case b.cfg.Method == Nearest:
	case at != until:
		b.interpolateTo(from, b.held[until], t, out)
	case out.Starved && at > 0:
		b.extrapolateFrom(b.held[at-1], from, min(t-from.time, b.cfg.Extrapolate), out)
	}
	return true
}

// bracket returns the indices of the last snapshot up to t and of the one after it, or the same
// index twice if t is outside all.
func (b *Buffer[T]) bracket(t time.Duration) (at, until int) {
	at = len(b.held) - 1
	for at > 0 && b.held[at].time > t {
		at--
	}
	if t < b.held[at].time || at == len(b.held)-1 {
		return at, at
	}
	return at, at + 1
}

// interpolateTo moves the objects in out, which are those of from, towards to at time t.
func (b *Buffer[T]) interpolateTo(from, to *snapshot[T], t time.Duration, out *Sample[T]) {
	interval := to.time - from.time
	if interval > b.cfg.Gap || t == from.time {
		return
	}
	f := float64(t-from.time) / float64(interval)
	for i, k := range common(out.IDs, to.ids) {
		if p, q := b.adapter.Pose(&from.objects[i]), b.adapter.Pose(&to.objects[k]); !still(b.cfg.Method, p, q) {
			b.adapter.SetPose(&out.Objects[i], blend(b.cfg.Method, p, q, f, interval))
		}
	}
}

// extrapolateFrom moves the objects in out, which are those of to, on as they moved since from.
func (b *Buffer[T]) extrapolateFrom(from, to *snapshot[T], on time.Duration, out *Sample[T]) {
	interval := to.time - from.time
	if interval > b.cfg.Gap || on == 0 {
		return
	}
	for i, k := range common(out.IDs, from.ids) {
		before, last := b.adapter.Pose(&from.objects[k]), b.adapter.Pose(&to.objects[i])
		if before.Teleports == last.Teleports {
			b.adapter.SetPose(&out.Objects[i], extrapolate(b.cfg.Method, before, last, interval, on))
		}
	}
}

// common yields the indices of the ids in both of two ascending lists.
func common(a, b []uint32) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		k := 0
		for i, id := range a {
			for k < len(b) && b[k] < id {
				k++
			}
			if k == len(b) || b[k] == id && !yield(i, k) {
				return
			}
		}
	}
}
