package interpolate

import (
	"iter"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/pose"
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
func (b *Buffer[T]) At(t time.Duration, out *Sample[T]) bool { return b.AtOf(nil, t, out) }

// AtOf is At for a buffer that has only some of its snapshots: those whose time is within half of
// Config.Interval of a time in only, which ascend. If there are none, or t is before all of them,
// AtOf is At.
func (b *Buffer[T]) AtOf(only []time.Duration, t time.Duration, out *Sample[T]) bool {
	if len(b.held) == 0 {
		return false
	}
	from, other := b.shown(only, t)
	out.Time, out.Starved = t, t > b.held[len(b.held)-1].time
	out.IDs = append(out.IDs[:0], from.ids...)
	out.Objects = append(out.Objects[:0], from.objects...)
	if other != nil {
		for i, k := range common(out.IDs, other.ids) {
			b.move(from, other, i, k, t, &out.Objects[i])
		}
	}
	return true
}

// Object sets out to one object at server time t, as At does, and reports whether it exists then.
func (b *Buffer[T]) Object(t time.Duration, id uint32, out *T) bool {
	return b.ObjectOf(nil, t, id, out)
}

// ObjectOf is Object for the snapshots that AtOf selects.
func (b *Buffer[T]) ObjectOf(only []time.Duration, t time.Duration, id uint32, out *T) bool {
	if len(b.held) == 0 {
		return false
	}
	from, other := b.shown(only, t)
	i, ok := slices.BinarySearch(from.ids, id)
	if !ok {
		return false
	}
	*out = from.objects[i]
	if other != nil {
		if k, ok := slices.BinarySearch(other.ids, id); ok {
			b.move(from, other, i, k, t, out)
		}
	}
	return true
}

// shown returns the snapshot whose objects are shown at t, and the second snapshot of the
// interpolation: the next one or, for extrapolation, the previous one. The second is nil if no
// object moves.
func (b *Buffer[T]) shown(only []time.Duration, t time.Duration) (from, other *snapshot[T]) {
	at, until := b.bracket(t)
	if len(only) > 0 {
		at, until = b.bracketOf(only, t)
	}
	from = b.held[at]
	switch {
	case at != until:
		other = b.held[until]
	case at > 0 && t > from.time && b.cfg.Extrapolate > 0:
		other = b.held[at-1]
	}
	if other == nil || max(from.time-other.time, other.time-from.time) > b.cfg.Gap {
		return from, nil
	}
	if b.cfg.Method == Nearest {
		if other.time-t < t-from.time && other.time > from.time {
			from = other
		}
		return from, nil
	}
	if t == from.time {
		other = nil
	}
	return from, other
}

// move sets out to object i of from with its pose at time t. The same object has index k in other.
func (b *Buffer[T]) move(from, other *snapshot[T], i, k int, t time.Duration, out *T) {
	p, q := b.adapter.Pose(&from.objects[i]), b.adapter.Pose(&other.objects[k])
	interval := other.time - from.time
	hermite, apart := b.cfg.Method == Hermite, interval.Seconds()
	switch {
	case interval < 0 && p.Teleports == q.Teleports:
		b.adapter.SetPose(out, pose.Extrapolate(hermite, &q, &p, -apart, min(t-from.time, b.cfg.Extrapolate).Seconds()))
	case interval > 0 && !pose.Still(hermite, &p, &q):
		b.adapter.SetPose(out, pose.Blend(hermite, &p, &q, float64(t-from.time)/float64(interval), apart))
	}
}

// bracket returns the indices of the last snapshot up to t and of the next one. Both are equal if t
// is before the first or after the last snapshot.
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

// bracketOf is bracket for the snapshots at the given times, which ascend.
func (b *Buffer[T]) bracketOf(only []time.Duration, t time.Duration) (at, until int) {
	k, _ := slices.BinarySearch(only, t+b.cfg.Interval/2)
	found := false
	for !found && k > 0 {
		k--
		at, found = b.nearest(only[k])
		found = found && b.held[at].time <= t
	}
	if !found {
		return b.bracket(t)
	}
	for _, next := range only[k+1:] {
		if until, found = b.nearest(next); found && until > at {
			return at, until
		}
	}
	return at, at
}

// nearest returns the index of the snapshot that is within half of Config.Interval of a time.
func (b *Buffer[T]) nearest(t time.Duration) (at int, ok bool) {
	at = len(b.held) - 1
	for at > 0 && t-b.held[at-1].time < b.held[at].time-t {
		at--
	}
	return at, (b.held[at].time - t).Abs() <= b.cfg.Interval/2
}

// common yields the indices of ids that are in both of two ascending lists.
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
