package jitter

import "time"

const (
	// Slack is averaged over blocks of this length, or of so many values where that is longer.
	blockLength = 250 * time.Millisecond
	blockValues = 8
	// forget is in which time what was learned of uneven arrival fades to 1/e, where nothing confirms it.
	forget = 30 * time.Second
	// startIntervals is what is assumed of it at first.
	startIntervals = 2
)

// slack measures how early values come before their release, and how unevenly.
type slack struct {
	low, high time.Duration // bounds of the target
	margin    time.Duration // beside what was needed
	needed    time.Duration // how much later than the mean a value comes, but for the few
	mean      time.Duration // of the last block

	begun time.Duration // when the block was
	sum   time.Duration // of values that were newer than all before
	count int
	least time.Duration // of all values
}

func newSlack(c *Config) slack {
	s := slack{low: c.MinDepth, high: c.MaxDepth, margin: c.Interval / 4, needed: startIntervals * c.Interval}
	s.mean = s.target()
	return s
}

// target is what the mean should be.
func (s *slack) target() time.Duration { return min(max(s.needed+s.margin, s.low), s.high) }

// add takes the slack of a value that came now; newest says that it is newer than all before. It says whether
// the mean is a new one.
func (s *slack) add(now, value time.Duration, newest bool) (ended bool) {
	if s.count == 0 {
		if !newest {
			return false
		}
		s.begun, s.sum, s.least = now, 0, value
	}
	if newest || s.mean-value <= s.high { // else no depth that is allowed would have saved it
		s.least = min(s.least, value)
	}
	if !newest {
		return false
	}
	s.sum += value
	s.count++
	if s.count < blockValues || now-s.begun < blockLength {
		return false
	}
	s.finish(now - s.begun)
	return true
}

// finish ends a block that lasted so long.
func (s *slack) finish(length time.Duration) {
	s.mean = s.sum / time.Duration(s.count)
	s.count = 0
	if late := min(s.mean-s.least, s.high); late >= s.needed {
		s.needed = late
		return
	}
	s.needed -= time.Duration(float64(s.needed) * min(1, float64(length)/float64(forget)))
}

// restart begins a block anew, after a change of the release times by which values come so early.
func (s *slack) restart(value time.Duration) { s.mean, s.count = value, 0 }
