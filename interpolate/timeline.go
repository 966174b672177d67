package interpolate

import (
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/serverclock"
)

const (
	// minSamples is the number of samples that learning the delay requires.
	minSamples = 32
	// brakePercent is the lowest speed to which playback slows down before the newest snapshot, in
	// percent. It is lower than the rate of any server that playback supports.
	brakePercent = 25
)

// timeline is the playback clock. It maps the client's time to the server time to show.
//
// Its line maps the client's time to the server's time. It fits the snapshots that had the shortest
// delay in the last second, has the rate of the server's ticks, and follows clock drift. The server
// time to show is the line minus the delay.
type timeline struct {
	cfg Config

	newest  time.Duration // server time of the newest snapshot
	arrived time.Duration // client time of its arrival
	offset  time.Duration // client time minus server time of that snapshot
	started bool

	line     serverclock.Line
	needed   window // delays that would have sufficed for recent snapshots
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
		l.line.Restart(now, server)
	case server <= l.newest: // late or duplicate: it shows only how short the delay can be
		l.line.Raise(now, server)
		return false
	default:
		restarted = l.follow(now, server)
	}
	switch {
	case restarted:
		l.restart()
	case l.cfg.Adaptive:
		l.needed.add(now, l.line.At(now)-l.newest)
	}
	l.started, l.newest, l.arrived, l.offset = true, server, now, offset
	return restarted
}

// follow updates the line with a snapshot. It reports whether the line dropped so far that learned
// delays are invalid, because the path changed or the server stalled.
func (l *timeline) follow(now, server time.Duration) (restarted bool) {
	was := l.line.At(now)
	l.line.Follow(now, server)
	return was-l.line.At(now) > serverclock.MaxSlew
}

// restart discards the learned delays. If the clock is past the newest snapshot, it moves back to
// it.
func (l *timeline) restart() {
	if l.started {
		l.playback.At = min(l.playback.At, l.newest+l.cfg.Extrapolate)
	}
	l.needed.sorted = l.needed.sorted[:0]
}

func (l *timeline) delay() time.Duration {
	if !l.cfg.Adaptive || len(l.needed.sorted) < minSamples {
		return l.cfg.Delay
	}
	return max(0, min(l.needed.quantile(l.cfg.Late), l.cfg.MaxDelay))
}

// play returns the server time to show. Before it reaches the newest snapshot, it slows down: after
// a server has become slower, motion is slower until the line follows.
func (l *timeline) play(now time.Duration) time.Duration {
	delay, from, since := l.delay(), l.playback.At, l.playback.Now
	started := l.playback.Playing
	at := l.playback.Step(now, l.line.At(now)-delay, &l.line)
	end := l.newest + l.cfg.Extrapolate
	if zone := (delay + l.cfg.Extrapolate - l.cfg.Interval) * 2 / 5; started && zone > 0 && at > end-zone {
		passed := max(0, now-since)
		percent := max(brakePercent, 100*max(0, min(end-from, zone))/zone)
		at = min(at, max(end-zone, from+passed/100*percent+passed%100*percent/100))
		l.playback.At = at
	}
	return at
}

func (l *timeline) reset() {
	*l = timeline{cfg: l.cfg, line: serverclock.Remote(l.cfg.Interval), needed: window{sorted: l.needed.sorted[:0]}}
}

const (
	// windowLength and windowSize bound the age and the number of the values in a window.
	windowLength = 30 * time.Second
	windowSize   = 1024
)

// window holds the recent values, by age and by size.
type window struct {
	recent [windowSize]timed // ring buffer
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
