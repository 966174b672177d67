package interpolate

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/serverclock"
)

const (
	// A packet counts for the base during one to two periods of this length, or of this number of
	// intervals if that is longer. A slower link or clock is recognized after that time.
	baseLength    = time.Second
	baseIntervals = 10
	// minSamples is the number of samples from which on the delay is learned.
	minSamples = 32
)

// timeline is the playback clock. It maps the client's time to the server time to show.
//
// Its base is the minimum difference between a snapshot's arrival and its server time over the last
// seconds: the sum of the offset between the clocks and of the shortest delay of the link. It
// follows clock drift. The server time to show is the client's time minus the base and the delay.
type timeline struct {
	cfg Config

	newest  time.Duration // server time of the newest snapshot
	arrived time.Duration // client time of its arrival
	offset  time.Duration // their difference
	started bool

	base     serverclock.Base
	needed   window // delays with which the newest snapshots would not have been late
	playback serverclock.Playback
}

// arrive records a snapshot's arrival and reports whether the clock restarts with it.
func (l *timeline) arrive(now, server time.Duration) (restarted bool) {
	if l.started {
		now = max(now, l.arrived)
	}
	offset := now - server
	switch {
	case !l.started || server > l.newest && (now-l.arrived > l.cfg.Gap || (offset-l.offset).Abs() > l.cfg.Gap):
		restarted = true
	case server <= l.newest: // late or duplicate: it shows only how short the delay can be
		l.base.Lower(offset)
		return false
	default:
		restarted = l.follow(now, offset)
	}
	switch {
	case restarted:
		l.restart(now, offset)
	case l.cfg.Adaptive:
		l.needed.add(now, now-l.newest-l.base.Fastest())
	}
	l.started, l.newest, l.arrived, l.offset = true, server, now, offset
	return restarted
}

// follow updates the base with an offset. It reports whether the base increased so much that
// learned delays are invalid: the path changed, or the server stalled.
func (l *timeline) follow(now, offset time.Duration) (restarted bool) {
	was := l.base.Fastest()
	l.base.Follow(now, offset, max(baseLength, baseIntervals*l.cfg.Interval))
	return l.base.Fastest()-was > serverclock.MaxSlew
}

// restart restarts with an offset. If the clock had run past the newest snapshot, it returns there.
func (l *timeline) restart(now, offset time.Duration) {
	if l.started {
		l.playback.At = min(l.playback.At, l.newest+l.cfg.Extrapolate)
	}
	l.base.Restart(now, offset)
	l.needed.sorted = l.needed.sorted[:0]
}

func (l *timeline) delay() time.Duration {
	if !l.cfg.Adaptive || len(l.needed.sorted) < minSamples {
		return l.cfg.Delay
	}
	return max(0, min(l.needed.quantile(l.cfg.Late), l.cfg.MaxDelay))
}

func (l *timeline) play(now time.Duration) time.Duration {
	return l.playback.Step(now, now-l.base.Fastest()-l.delay())
}

func (l *timeline) reset() {
	*l = timeline{cfg: l.cfg, needed: window{sorted: l.needed.sorted[:0]}}
}

const (
	// windowLength and windowSize bound the age and the number of the values in a window.
	windowLength = 30 * time.Second
	windowSize   = 1024
)

// window is the recent values, by age and by size.
type window struct {
	recent [windowSize]timed // a ring
	first  int
	sorted []time.Duration // capacity windowSize
}

type timed struct{ at, value time.Duration }

// add adds a value and removes old ones. Times must not decrease.
func (w *window) add(at, value time.Duration) {
	for len(w.sorted) == windowSize || len(w.sorted) > 0 && at-w.recent[w.first].at > windowLength {
		i, _ := slices.BinarySearch(w.sorted, w.recent[w.first].value)
		w.sorted = slices.Delete(w.sorted, i, i+1)
		w.first = (w.first + 1) % windowSize
	}
	w.recent[(w.first+len(w.sorted))%windowSize] = timed{at, value}
	i, _ := slices.BinarySearch(w.sorted, value)
	w.sorted = slices.Insert(w.sorted, i, value)
}

// quantile returns the lowest value that at most the given share of values exceeds.
func (w *window) quantile(share float64) time.Duration {
	return w.sorted[len(w.sorted)-1-int(share*float64(len(w.sorted)))]
}
