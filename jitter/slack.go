package jitter

import "time"

const (
	// The mean slack is taken over blocks of blockLength, or of blockValues values if that is
	// longer.
	blockLength = 250 * time.Millisecond
	blockValues = 8
	// decayTime is the time in which the learned lateness decays to 1/e if nothing confirms it.
	decayTime = 30 * time.Second
	// startIntervals is the initial learned lateness, in intervals.
	startIntervals = 2
)

// slack measures the mean slack of values and its variation.
type slack struct {
	low, high time.Duration // bounds of the target
	margin    time.Duration // added to needed to get the target
	needed    time.Duration // learned lateness of the latest values, relative to the mean
	mean      time.Duration // mean slack of the last block

	begun time.Duration // start of the block
	sum   time.Duration // sum of the slack of values newer than all before
	count int
	min   time.Duration // minimum slack of all values
	last  time.Duration // arrival of the last value added to sum
	value time.Duration // slack of the last value added to sum
}

func newSlack(c *Config) slack {
	s := slack{low: c.MinDepth, high: c.MaxDepth, margin: c.Interval / 4, needed: startIntervals * c.Interval}
	s.mean = s.target()
	return s
}

func (s *slack) target() time.Duration { return min(max(s.needed+s.margin, s.low), s.high) }

// add adds the slack of a value that arrived now, and reports whether a block ended. newest reports
// that the value is newer than all before.
func (s *slack) add(now, value time.Duration, newest bool) (ended bool) {
	if newest && s.count > 0 && now == s.last {
		// The sender held back values that arrive together until the last of them. Only the last
		// one counts for the mean.
		s.sum += value - s.value
		s.value, s.min = value, min(s.min, value)
		return false
	}
	if newest && s.count >= blockValues && now-s.begun >= blockLength {
		s.finish(now - s.begun)
		ended = true
	}
	if s.count == 0 {
		if !newest {
			return ended
		}
		s.begun, s.sum, s.min = now, 0, value
	}
	if newest || s.mean-value <= s.high { // no permitted depth would have saved later values
		s.min = min(s.min, value)
	}
	if newest {
		s.sum += value
		s.count++
		s.last, s.value = now, value
	}
	return ended
}

func (s *slack) finish(length time.Duration) {
	s.mean = s.sum / time.Duration(s.count)
	s.count = 0
	if late := min(s.mean-s.min, s.high); late >= s.needed {
		s.needed = late
		return
	}
	s.needed -= time.Duration(float64(s.needed) * min(1, float64(length)/float64(decayTime)))
}

// restart starts a new block after a change of release times, with value as the mean.
func (s *slack) restart(value time.Duration) { s.mean, s.count = value, 0 }

const (
	// MaxPace is the maximum relative change of a clock's rate.
	MaxPace = 0.25
	// A clock corrects differences with the time constant settle. settle exceeds three times the
	// delay of the control loop (a block and an RTT of 300 ms), so that slack does not overshoot.
	// Differences above small are caused by stalls; the part above small is corrected with
	// settleFast.
	settle     = 3 * time.Second
	small      = 12 * time.Millisecond
	settleFast = time.Second
	// stale is the age at which a report expires.
	stale = 2 * time.Second
	// minRate and maxRate bound the reported rates of the receiver's ticks that are accepted.
	minRate, maxRate = 0.25, 2
)

// paced returns the rate of a clock, 1 ± MaxPace, that brings slack to its target.
func paced(slack, target time.Duration) float64 {
	short := float64(target) - float64(slack)
	rate := short / float64(settle)
	switch {
	case short > float64(small):
		rate += (short - float64(small)) / float64(settleFast)
	case short < -float64(small):
		rate += (short + float64(small)) / float64(settleFast)
	}
	return 1 + max(-MaxPace, min(rate, MaxPace))
}

// Pacer adjusts the rate of a sender's clock to the reports of the receiver's buffer. The zero
// value has rate 1. Not safe for concurrent use.
type Pacer struct {
	reported time.Duration
	rate     float64 // 0 before the first report
}

// Report records values that the receiver reported from its [Stats]: slack, target, and the rate of
// its ticks.
func (p *Pacer) Report(now, slack, target time.Duration, rate float64) {
	p.reported, p.rate = now, max(minRate, min(rate, maxRate))*paced(slack, target)
}

// Rate returns the rate of the clock. It follows from the last report for two seconds, and is 1
// after that.
func (p *Pacer) Rate(now time.Duration) float64 {
	if p.rate == 0 || now-p.reported > stale {
		return 1
	}
	return p.rate
}
