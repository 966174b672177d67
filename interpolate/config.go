package interpolate

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Method is how a pose between two snapshots is made.
type Method int

const (
	// Linear goes straight from position to position, and turns at constant speed.
	Linear Method = iota
	// Hermite goes on the cubic that has both positions and both velocities, and turns as Linear does.
	Hermite
	// Nearest shows the snapshot that is nearer in time, as it is.
	Nearest
)

// Config says what a buffer expects. Its zero fields mean the defaults, but for Interval.
type Config struct {
	// Interval is the time between two snapshots as the server sends them, from 1 ms to 10 s. It has no default.
	Interval time.Duration
	Method   Method
	// Delay is how long after the moment at which a snapshot that nothing held up arrives it is shown: the rule of the
	// function of that name, unless set, of Interval, Jitter and Loss. It is also what Adaptive begins with.
	Delay time.Duration
	// Jitter is what packets are held up beyond the fastest, but for the few; 50 ms by default, three frames at 60 Hz.
	Jitter time.Duration
	// Loss is the share of packets that are lost, below 1; 0.05 by default.
	Loss float64
	// Adaptive has the delay follow what the last seconds would have needed.
	Adaptive bool
	// Late is the share of snapshots that may come too late under Adaptive, below 1; 0.002 by default.
	Late float64
	// MaxDelay bounds the delay under Adaptive; by default 500 ms, or 6 Intervals where that is more.
	MaxDelay time.Duration
	// Extrapolate is for how long objects move on beyond the newest snapshot: 0, the default, stops them there.
	Extrapolate time.Duration
	// Gap is the shortest time without snapshots, or jump of the server's time, that is a pause and not a loss: nothing
	// is interpolated across it, and the client's idea of the server's time starts anew after it. By default 1 s, or 10
	// Intervals where that is more.
	Gap time.Duration
	// Snapshots is how many are held, up to 1024 and at least as many as are sent within Delay, and under Adaptive
	// MaxDelay, and two; by default a quarter more.
	Snapshots int
	// Objects is how many objects a snapshot has at most, up to 65536. The default is 4096, or less where that would be
	// more than 524,288 objects in all Snapshots: 836 objects with 627 snapshots.
	Objects int
}

// Bounds of a configuration.
const (
	minInterval  = time.Millisecond
	maxInterval  = 10 * time.Second
	maxSnapshots = 1024
	maxObjects   = 65536
)

// defaultHeld is how many objects all snapshots hold together unless Config.Objects is set. Where Interval is what a
// server says, it bounds memory.
const defaultHeld = 1 << 19

// hitchShare is how seldom the rule lets losses exhaust the buffer, as a share of snapshots. It makes the rule three
// intervals from 1.5 to 5.8 % loss.
const hitchShare = 2e-4

// Delay is the rule: time for so many losses in a row that more of them befall fewer than one in 5,000 snapshots, and
// for the jitter. With a loss of 2 to 5 % that is three intervals and the jitter. A loss of 1 or more, or NaN, counts as
// one half, of less than 0 as none.
func Delay(interval, jitter time.Duration, loss float64) time.Duration {
	if !(loss < 1) {
		loss = 0.5
	}
	n := 1
	for left := loss; left > hitchShare && n < 16; left *= loss {
		n++
	}
	return time.Duration(n)*interval + jitter
}

// withDefaults gives the configuration with nothing left out, or an error that names the field which is wrong.
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
		if d.value < 0 || d.value > time.Hour {
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
	longest := c.Delay
	if c.Adaptive {
		longest = max(longest, c.MaxDelay)
	}
	least := int(longest/c.Interval) + 2
	c.Snapshots = cmp.Or(c.Snapshots, max(8, least+least/4))
	if c.Snapshots < least || c.Snapshots > maxSnapshots {
		return bad("Snapshots", c.Snapshots, fmt.Sprintf("from %d, for a delay of %v at that Interval, to %d", least, longest, maxSnapshots))
	}
	c.Objects = cmp.Or(c.Objects, min(4096, defaultHeld/c.Snapshots))
	if c.Objects < 1 || c.Objects > maxObjects {
		return bad("Objects", c.Objects, "1 to 65536")
	}
	if c.Extrapolate >= c.Gap {
		return bad("Extrapolate", c.Extrapolate, "less than Gap, which is "+c.Gap.String())
	}
	return c, nil
}
