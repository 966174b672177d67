package interpolate

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Method is a method of interpolation between two snapshots.
type Method int

const (
	// Linear interpolates positions linearly and orientations by slerp.
	Linear Method = iota
	// Hermite interpolates positions by the cubic through both positions and velocities, and
	// orientations as Linear does.
	Hermite
	// Nearest shows the snapshot that is nearer in time.
	Nearest
)

// Config configures a [Buffer]. Zero fields mean the defaults; Interval has no default.
type Config struct {
	// Interval is the time between two snapshots as the server sends them, 1 ms to 10 s.
	Interval time.Duration
	Method   Method
	// Delay is the interpolation delay; default [Delay] of Interval, Jitter and Loss. With Adaptive
	// it is the initial delay.
	Delay time.Duration
	// Jitter is the delay variation: the additional delay of nearly all packets over the fastest is
	// at most this; default 50 ms.
	Jitter time.Duration
	// Loss is the packet loss, below 1; default 0.05.
	Loss float64
	// Adaptive makes the delay follow the delay that recent snapshots would have needed.
	Adaptive bool
	// Late is the permitted share of snapshots that arrive late with Adaptive, below 1; default
	// 0.002.
	Late float64
	// MaxDelay bounds the delay with Adaptive; default 500 ms or 6 Intervals, whichever is more.
	MaxDelay time.Duration
	// Extrapolate is the maximum time of extrapolation beyond the newest snapshot; default 0.
	Extrapolate time.Duration
	// Gap is the minimum time without snapshots, or jump of the server's time, that counts as a
	// pause rather than packet loss: nothing is interpolated across it, and the playback clock
	// restarts. The default is 1 s or 10 Intervals, whichever is more.
	Gap time.Duration
	// Snapshots is the number of snapshots to store. The maximum is 1024. The minimum is the number
	// of snapshots within the maximum delay, plus two. The default is a quarter more than the
	// minimum.
	Snapshots int
	// Objects is the maximum number of objects of a snapshot, at most 65,536. The default is 4096,
	// or less so that all snapshots together have at most 524,288 objects; with 627 snapshots, for
	// example, it is 836.
	Objects int
}

// Bounds of a configuration.
const (
	minInterval  = time.Millisecond
	maxInterval  = 10 * time.Second
	maxTimeSpan  = time.Hour // maximum of Delay, Jitter, MaxDelay, Extrapolate and Gap
	maxSnapshots = 1024
	maxObjects   = 65536
)

// defaultTotal is the maximum number of objects of all snapshots if Config.Objects is not set. It
// bounds memory where a server determines Interval.
const defaultTotal = 1 << 19

// hitchShare is the permitted share of snapshots with a hitch: losses have exhausted the buffer. At
// this share, the default delay is three intervals for a loss of 1.5 to 5.8 %.
const hitchShare = 2e-4

// Delay returns the default interpolation delay: the jitter plus a number of intervals that covers
// loss bursts. Fewer than one in 5,000 snapshots belongs to a longer loss burst. For a loss of 2 to
// 5 %, the number is three. A loss of 1 or more, or NaN, counts as 0.5, a negative one as 0.
// Interval counts within 0 to 10 s and jitter within 0 to 1 h, which are the ranges of Config.
func Delay(interval, jitter time.Duration, loss float64) time.Duration {
	if !(loss < 1) {
		loss = 0.5
	}
	interval, jitter = max(0, min(interval, maxInterval)), max(0, min(jitter, maxTimeSpan))
	n := 1
	for left := loss; left > hitchShare && n < 16; left *= loss {
		n++
	}
	return time.Duration(n)*interval + jitter
}

func (c Config) withDefaults() (Config, error) {
	bad := func(field string, v any, want string) (Config, error) {
		return Config{}, fmt.Errorf("interpolate: Config.%s is %v, must be %s", field, v, want)
	}
	if c.Interval < minInterval || c.Interval > maxInterval {
		return bad("Interval", c.Interval, "from 1ms to 10s")
	}
	if c.Method < Linear || c.Method > Nearest {
		return bad("Method", int(c.Method), "Linear, Hermite or Nearest")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Delay", c.Delay}, {"Jitter", c.Jitter}, {"MaxDelay", c.MaxDelay}, {"Extrapolate", c.Extrapolate}, {"Gap", c.Gap}} {
		if d.value < 0 || d.value > maxTimeSpan {
			return bad(d.field, d.value, "from 0 to 1h")
		}
	}
	for _, s := range []struct {
		field string
		value float64
	}{{"Loss", c.Loss}, {"Late", c.Late}} {
		if math.IsNaN(s.value) || s.value < 0 || s.value >= 1 {
			return bad(s.field, s.value, "at least 0 and below 1")
		}
	}
	c.Loss = cmp.Or(c.Loss, 0.05)
	c.Late = cmp.Or(c.Late, 0.002)
	c.Jitter = cmp.Or(c.Jitter, 50*time.Millisecond)
	c.Delay = cmp.Or(c.Delay, Delay(c.Interval, c.Jitter, c.Loss))
	c.MaxDelay = cmp.Or(c.MaxDelay, max(500*time.Millisecond, 6*c.Interval))
	c.Gap = cmp.Or(c.Gap, max(time.Second, 10*c.Interval))
	maxDelay := c.Delay
	if c.Adaptive {
		maxDelay = max(maxDelay, c.MaxDelay)
	}
	minSnapshots := int(maxDelay/c.Interval) + 2
	c.Snapshots = cmp.Or(c.Snapshots, max(8, minSnapshots+minSnapshots/4))
	if c.Snapshots < minSnapshots || c.Snapshots > maxSnapshots {
		return bad("Snapshots", c.Snapshots, fmt.Sprintf("from %d to %d: the maximum delay is %v, the interval %v", minSnapshots, maxSnapshots, maxDelay, c.Interval))
	}
	c.Objects = cmp.Or(c.Objects, min(4096, defaultTotal/c.Snapshots))
	if c.Objects < 1 || c.Objects > maxObjects {
		return bad("Objects", c.Objects, "1 to 65536")
	}
	if c.Extrapolate >= c.Gap {
		return bad("Extrapolate", c.Extrapolate, "less than Gap, which is "+c.Gap.String())
	}
	return c, nil
}
