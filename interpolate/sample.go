package interpolate

import "time"

// Sample is the world at one time. Its slices are reused when it is filled again.
type Sample[T any] struct {
	// Time is the server's time that was asked for.
	Time time.Duration
	// IDs ascend; Objects[i] is that of IDs[i].
	IDs     []uint32
	Objects []T
	// Starved says that Time is after the newest snapshot: objects are there, or moved on for Config.Extrapolate.
	Starved bool
}

// Sample fills out with what is to be shown at now. It is Play and At.
func (b *Buffer[T]) Sample(now time.Duration, out *Sample[T]) bool {
	t, ok := b.Play(now)
	return ok && b.At(t, out)
}

// At fills out with the world at the server's time t, or says false while there is no snapshot. The objects are those of
// the last snapshot up to t, with their poses between that and the next; before the oldest snapshot they are as there.
// An object that the next snapshot lacks, or that teleports on the way, stays until then, and all do that are in a gap.
func (b *Buffer[T]) At(t time.Duration, out *Sample[T]) bool {
	if len(b.held) == 0 {
		return false
	}
	at, until := b.around(t)
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
		b.between(from, b.held[until], t, out)
	case out.Starved && at > 0:
		b.beyond(b.held[at-1], from, min(t-from.time, b.cfg.Extrapolate), out)
	}
	return true
}

// around gives the last snapshot up to t and the one after it, twice the same if t is outside all.
func (b *Buffer[T]) around(t time.Duration) (at, until int) {
	at = len(b.held) - 1
	for at > 0 && b.held[at].time > t {
		at--
	}
	if t < b.held[at].time || at == len(b.held)-1 {
		return at, at
	}
	return at, at + 1
}

// between moves what is in out, which is that of from, to t on the way to another snapshot.
func (b *Buffer[T]) between(from, to *snapshot[T], t time.Duration, out *Sample[T]) {
	way := to.time - from.time
	if way > b.cfg.Gap || t == from.time {
		return
	}
	f := float64(t-from.time) / float64(way)
	k := 0
	for i, id := range out.IDs {
		if k = find(to.ids, k, id); k == len(to.ids) {
			return
		}
		if to.ids[k] != id {
			continue
		}
		if p, q := b.adapter.Pose(&from.objects[i]), b.adapter.Pose(&to.objects[k]); !still(b.cfg.Method, p, q) {
			b.adapter.SetPose(&out.Objects[i], blend(b.cfg.Method, p, q, f, way))
		}
	}
}

// beyond moves what is in out, which is that of to, on for a time, as it came from the snapshot before.
func (b *Buffer[T]) beyond(from, to *snapshot[T], on time.Duration, out *Sample[T]) {
	way := to.time - from.time
	if way > b.cfg.Gap || on == 0 {
		return
	}
	k := 0
	for i, id := range out.IDs {
		if k = find(from.ids, k, id); k == len(from.ids) {
			return
		}
		if from.ids[k] != id {
			continue
		}
		before, last := b.adapter.Pose(&from.objects[k]), b.adapter.Pose(&to.objects[i])
		if before.Teleports == last.Teleports {
			b.adapter.SetPose(&out.Objects[i], extrapolate(b.cfg.Method, before, last, way, on))
		}
	}
}

// find gives the first place from k on whose id is not below.
func find(ids []uint32, k int, id uint32) int {
	for k < len(ids) && ids[k] < id {
		k++
	}
	return k
}
