package jitter

import (
	"cmp"
	"fmt"
	"math/bits"
	"time"
)

// Config configures a [Buffer]. Zero fields mean the defaults; Interval has no default.
type Config struct {
	// Interval is the time between two ticks, 1 ms to 10 s.
	Interval time.Duration
	// Depth fixes the target: the mean slack of values, at most 10 s or 10 Intervals, whichever is
	// more. 0, the default, means a learned target.
	Depth time.Duration
	// MinDepth and MaxDepth bound the learned target; default a quarter of an Interval, and 250 ms
	// or 4 Intervals, whichever is more.
	MinDepth, MaxDepth time.Duration
	// Gap is the time without values that counts as a pause: no ticks are missing during it, and
	// the next value resyncs the buffer. The default is 500 ms or 8 Intervals, whichever is more.
	Gap time.Duration
	// Capacity is the maximum number of values to store, at most 4096, rounded up to a power of
	// two. The default and minimum is the number of values that arrive in twice the maximum
	// depth and some reserve, at least 8. If more arrive while the receiver stalls, the oldest are
	// skipped.
	Capacity int
}

// Bounds of a configuration.
const (
	minInterval = time.Millisecond
	maxInterval = 10 * time.Second
	maxCapacity = 4096
	// spareIntervals is the spare capacity in Intervals, and the minimum of the default MaxDepth.
	spareIntervals = 4
)

func (c Config) withDefaults() (Config, error) {
	bad := func(field string, v any, want string) (Config, error) {
		return Config{}, fmt.Errorf("jitter: Config.%s is %v, must be %s", field, v, want)
	}
	if c.Interval < minInterval || c.Interval > maxInterval {
		return bad("Interval", c.Interval, "from 1ms to 10s")
	}
	maxDuration := max(10*time.Second, 10*c.Interval)
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Depth", c.Depth}, {"MinDepth", c.MinDepth}, {"MaxDepth", c.MaxDepth}, {"Gap", c.Gap}} {
		if d.value < 0 || d.value > maxDuration {
			return bad(d.field, d.value, "from 0 to "+maxDuration.String())
		}
	}
	c.MinDepth = cmp.Or(c.MinDepth, c.Interval/4)
	c.MaxDepth = cmp.Or(c.MaxDepth, max(250*time.Millisecond, spareIntervals*c.Interval, c.MinDepth))
	if c.Depth != 0 {
		c.MinDepth, c.MaxDepth = c.Depth, c.Depth
	}
	if c.MinDepth > c.MaxDepth {
		return bad("MinDepth", c.MinDepth, "at most MaxDepth, which is "+c.MaxDepth.String())
	}
	c.Gap = cmp.Or(c.Gap, max(500*time.Millisecond, 8*c.Interval))
	minCapacity := max(8, int(2*(c.MaxDepth/c.Interval))+2*spareIntervals)
	c.Capacity = cmp.Or(c.Capacity, minCapacity)
	if c.Capacity < minCapacity || c.Capacity > maxCapacity {
		return bad("Capacity", c.Capacity, fmt.Sprintf("from %d, for a depth of %v at that Interval, to %d", minCapacity, c.MaxDepth, maxCapacity))
	}
	c.Capacity = 1 << bits.Len(uint(c.Capacity-1))
	return c, nil
}

// Stats counts values and describes the state of a buffer.
type Stats struct {
	// Released is the number of values released at their tick. Missing is the number of ticks
	// without a value. Dry is the number of missing ticks at which no newer value was stored
	// either, so that values were late rather than lost.
	Released, Missing, Dry uint64
	// Late counts values that arrived after their tick, Duplicate values of a tick that already had
	// one, and Early values too far ahead. All of these were rejected.
	Late, Duplicate, Early uint64
	// Resyncs counts changes of all release times after the first value: after a pause, a jump of
	// the ticks, or a long time of too late or too early values. Skipped is the number of stored
	// values that were discarded by resyncs.
	Resyncs, Skipped uint64
	// Held is the number of stored values.
	Held int
	// Slack is the recent mean slack, negative if values were late; Target is its target.
	Slack, Target time.Duration
	// Rate is the measured rate of the ticks: 1 if they take Config.Interval, 0.9 if they take 11 %
	// longer. With Pop, it is the rate of the sender's ticks.
	Rate float64
}
