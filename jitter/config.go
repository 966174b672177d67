package jitter

import (
	"fmt"
	"math/bits"
	"time"
)

// Config says what a buffer expects. Its zero fields mean the defaults, but for Interval.
type Config struct {
	// Interval is the time between two frame times, from 1 ms to 10 s. It has no default.
	Interval time.Duration
	// Depth fixes the target: how early values are to come before their release, on average; at most 10 s, or 10 Intervals
	// where that is more. At 0, the default, it is learned.
	Depth time.Duration
	// MinDepth and MaxDepth bound the target that is learned: by default no less than a quarter of an Interval, and at
	// most 250 ms, or 4 Intervals where that is more. Values that come earlier than MaxDepth, or Depth, by more than 4
	// Intervals on average are skipped, so that nothing is shown older than that for long.
	MinDepth, MaxDepth time.Duration
	// Gap is for how long nothing may come before that counts as a pause: ticks are not missing then, and the next
	// value begins anew. By default half a second, or 8 Intervals where that is more.
	Gap time.Duration
	// Capacity is how many values are held at most, rounded up to a power of two, at most 4096; by default and at least
	// what comes in twice the largest depth, and 8.
	Capacity int
}

// Bounds of a configuration.
const (
	minInterval = time.Millisecond
	maxInterval = 10 * time.Second
	maxCapacity = 4096
	// spare is by how many intervals more than the largest depth values may come early.
	spare = 4
)

// withDefaults gives the configuration with nothing left out, or an error that names the field which is wrong.
func (c Config) withDefaults() (Config, error) {
	bad := func(field string, v any, want string) (Config, error) {
		return Config{}, fmt.Errorf("jitter: Config.%s is %v, must be %s", field, v, want)
	}
	if c.Interval < minInterval || c.Interval > maxInterval {
		return bad("Interval", c.Interval, "from 1ms to 10s")
	}
	longest := max(10*time.Second, 10*c.Interval)
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Depth", c.Depth}, {"MinDepth", c.MinDepth}, {"MaxDepth", c.MaxDepth}, {"Gap", c.Gap}} {
		if d.value < 0 || d.value > longest {
			return bad(d.field, d.value, "from 0 to "+longest.String())
		}
	}
	if c.MinDepth == 0 {
		c.MinDepth = c.Interval / 4
	}
	if c.MaxDepth == 0 {
		c.MaxDepth = max(250*time.Millisecond, spare*c.Interval, c.MinDepth)
	}
	if c.Depth != 0 {
		c.MinDepth, c.MaxDepth = c.Depth, c.Depth
	}
	if c.MinDepth > c.MaxDepth {
		return bad("MinDepth", c.MinDepth, "at most MaxDepth, which is "+c.MaxDepth.String())
	}
	if c.Gap == 0 {
		c.Gap = max(500*time.Millisecond, 8*c.Interval)
	}
	least := max(8, int(2*(c.MaxDepth/c.Interval))+2*spare)
	if c.Capacity == 0 {
		c.Capacity = least
	}
	if c.Capacity < least || c.Capacity > maxCapacity {
		return bad("Capacity", c.Capacity, fmt.Sprintf("from %d, for a depth of %v at that Interval, to %d", least, c.MaxDepth, maxCapacity))
	}
	c.Capacity = 1 << bits.Len(uint(c.Capacity-1))
	return c, nil
}
