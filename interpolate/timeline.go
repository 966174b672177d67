package interpolate

import "time"

const (
	// A packet counts for the base for one to two periods of this length, or of so many intervals where that is more:
	// so long does it take to believe that the link or a clock has become slower.
	baseLength    = time.Second
	baseIntervals = 10
	// enough is how many gaps between snapshots tell more of the link than the rule does.
	enough = 32
	// slewShare is by how much time is played faster or slower to come to where it should be.
	slewShare = 0.05
	// slewMost is how far from there it may be before it jumps on, or stands still.
	slewMost = 250 * time.Millisecond
)

// timeline tells which of the server's times is shown at which of the client's.
//
// The least difference between a snapshot's arrival and its time, of the last seconds, is its base: a sum of the two
// clocks' offset and of the fastest way. It follows a clock that drifts. What is shown is the base and the delay behind.
type timeline struct {
	cfg Config

	newest  time.Duration // server's time of the newest snapshot
	arrived time.Duration // client's time at which it came
	offset  time.Duration // the difference
	started bool

	base, before time.Duration // least offset of this period, and of the one before
	period       time.Duration // when this one began
	needed       window        // delays that would have had each newest snapshot come in time

	now, at time.Duration // of the last play
	playing bool
}

// arrive takes note of a snapshot's arrival. It says whether the timeline starts anew with it.
func (l *timeline) arrive(now, server time.Duration) (anew bool) {
	if l.started {
		now = max(now, l.arrived)
	}
	offset := now - server
	switch {
	case !l.started || server > l.newest && (now-l.arrived > l.cfg.Gap || distance(offset, l.offset) > l.cfg.Gap):
		anew = true
	case server <= l.newest: // it was overtaken, or sent again: it tells of the fastest way alone
		l.base = min(l.base, offset)
		return false
	default:
		anew = l.follow(now, offset)
	}
	switch {
	case anew:
		l.restart(now, offset)
	case l.cfg.Adaptive:
		l.needed.add(now, now-l.newest-l.fastest())
	}
	l.started, l.newest, l.arrived, l.offset = true, server, now, offset
	return anew
}

// follow has the base follow an offset. It says whether the base has come to be so much more that what was learned is of
// another way, or of a server that hung.
func (l *timeline) follow(now, offset time.Duration) (anew bool) {
	was := l.fastest()
	if now-l.period > max(baseLength, baseIntervals*l.cfg.Interval) {
		l.before, l.base, l.period = l.base, offset, now
	}
	l.base = min(l.base, offset)
	return l.fastest()-was > slewMost
}

// restart begins with an offset, where the play is: what was shown has waited at the end, though its time went on.
func (l *timeline) restart(now, offset time.Duration) {
	if l.started {
		l.at = min(l.at, l.newest+l.cfg.Extrapolate)
	}
	l.base, l.before, l.period = offset, offset, now
	l.needed.reset()
}

func distance(a, b time.Duration) time.Duration { return max(a-b, b-a) }

func (l *timeline) fastest() time.Duration { return min(l.base, l.before) }

// delay is how far behind the newest snapshot that nothing held up the play should be.
func (l *timeline) delay() time.Duration {
	if !l.cfg.Adaptive || len(l.needed.sorted) < enough {
		return l.cfg.Delay
	}
	return max(0, min(l.needed.above(l.cfg.Late), l.cfg.MaxDelay))
}

// play gives the server's time to be shown now. It runs a little faster or slower to where it should be, and if that is
// far jumps on or stands still, but never runs backwards. A now before the last one counts as the last one.
func (l *timeline) play(now time.Duration) time.Duration {
	want := now - l.fastest() - l.delay()
	if !l.playing {
		l.playing, l.now, l.at = true, now, want
		return want
	}
	step := max(0, now-l.now)
	l.now += step
	l.at += step
	behind := want - l.at
	switch most := time.Duration(slewShare * float64(step)); {
	case behind > slewMost:
		l.at = want
	case behind < -slewMost:
		l.at -= min(step, -behind)
	default:
		l.at += max(-most, min(behind, most))
	}
	return l.at
}

// reset forgets everything.
func (l *timeline) reset() {
	sorted := l.needed.sorted[:0]
	*l = timeline{cfg: l.cfg}
	l.needed.sorted = sorted
}
