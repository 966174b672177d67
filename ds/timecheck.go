package ds

import (
	"cmp"
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/schema"
)

// Defaults of a TimeCheck.
const (
	defaultMargin = 250 * time.Millisecond
	defaultDrift  = 0.001
	maxMargin     = time.Minute
)

// TimeCheck is a [HandleOption]: the server compares the time that a player's calls of the RPC
// simulate with its own, so that a client that calls more often than it declared, or with more time
// per call, gains no more than a margin. It is for RPCs that move a player's character, without a
// [JitterBuffer], which takes one call per tick anyway. Zero fields mean the defaults.
//
// Each delivered call simulates one interval of the declared rate, or what Delta says. Calls that
// are lost simulate nothing. The difference of the two clocks is how far the player is ahead; it
// follows the datagrams' times of arrival, so the margins must cover their jitter, and the bursts
// that follow an interruption of the path.
type TimeCheck struct {
	// MaxAhead is how far ahead a player may be, default 250 ms. A call that exceeds it is
	// detected.
	MaxAhead time.Duration
	// MaxBehind is how much time a player can save up by not calling, default 250 ms. After an
	// interruption of the path, calls that arrive at once may simulate MaxAhead and MaxBehind.
	MaxBehind time.Duration
	// Drift is the relative difference of the clocks' rates that is forgiven, up to 0.1, default
	// 0.001: the clocks of honest clients differ by up to 0.0002.
	Drift float64
	// Delta names the field of one number with the time that a call simulates, in seconds. Without
	// it, each call simulates one interval of the declared rate.
	Delta string
	// Resolve drops calls from a detection on, as ahead_of_time, until the player is not ahead any
	// more. Otherwise all calls are delivered, and each further MaxAhead is another detection.
	Resolve bool
	// Detected, if set, is called for each detection, where handlers run, with how far ahead the
	// player is.
	Detected func(p *Player, rpc string, ahead time.Duration)
}

func (c TimeCheck) apply(r *rpc, _ *Config) error {
	c.MaxAhead, c.MaxBehind = cmp.Or(c.MaxAhead, defaultMargin), cmp.Or(c.MaxBehind, defaultMargin)
	c.Drift = cmp.Or(c.Drift, defaultDrift)
	if err := cmp.Or(
		between("MaxAhead", c.MaxAhead, 0, maxMargin),
		between("MaxBehind", c.MaxBehind, 0, maxMargin),
		between("Drift", c.Drift, 0, 0.1),
	); err != nil {
		return fmt.Errorf("TimeCheck.%w", err)
	}
	check := &timeCheck{TimeCheck: c, field: -1}
	if c.Delta != "" {
		for i := range r.schema.Fields() {
			if f := &r.schema.Fields()[i]; f.Name == c.Delta && f.Kind == schema.KindScalar && f.Values() == 1 {
				check.field = i
			}
		}
		if check.field < 0 {
			return fmt.Errorf("TimeCheck.Delta is %q, want the name of a field of one number", c.Delta)
		}
	}
	r.time = check
	return nil
}

// timeCheck is the TimeCheck of an RPC.
type timeCheck struct {
	TimeCheck
	field int // number of Delta's field, or -1
}

// delta returns the time that a call of a binding simulates.
func (c *timeCheck) delta(b *binding, f *schema.Frame) time.Duration {
	if c.field < 0 {
		return time.Duration(float64(time.Second) / b.hz)
	}
	var buf [1]float64
	seconds := b.rpc.schema.RestoreField(buf[:0], f, c.field)[0]
	return time.Duration(min(max(seconds, 0), maxMargin.Seconds()*2) * float64(time.Second))
}

// clientTime is how far the calls of a binding are ahead of the server's clock. It belongs to the
// goroutine of handlers.
type clientTime struct {
	last      time.Time     // arrival of the last call
	ahead     time.Duration // negative if behind
	resolving bool
}

// call counts a call that arrived at a time. It reports whether the call is to be dropped, and
// whether the player was detected, and returns how far ahead it is with the call.
func (t *clientTime) call(c *timeCheck, at time.Time, delta time.Duration) (ahead time.Duration, drop, detected bool) {
	if t.last.IsZero() {
		t.last = at
		return 0, false, false
	}
	if passed := at.Sub(t.last); passed > 0 {
		t.last = at
		forgiven := time.Duration(float64(passed) * c.Drift)
		t.ahead -= passed
		if t.ahead > 0 {
			t.ahead = max(0, t.ahead-forgiven)
		} else {
			t.ahead = max(-c.MaxBehind, min(0, t.ahead+forgiven))
		}
	}
	if t.resolving = t.resolving && t.ahead > 0; t.resolving {
		return t.ahead, true, false
	}
	switch ahead = t.ahead + delta; {
	case ahead <= c.MaxAhead:
		t.ahead = ahead
		return ahead, false, false
	case c.Resolve:
		t.resolving = t.ahead > 0
		return ahead, true, true
	}
	t.ahead = 0
	return ahead, false, true
}

// keepsTime reports whether a call is to be delivered, and counts detections.
func (b *binding) keepsTime(p *Player, at time.Time, delta time.Duration) bool {
	c := b.rpc.time
	ahead, drop, detected := b.time.call(c, at, delta)
	if detected {
		b.counts.update(func(total *RPCStats) { total.TimeDetections++ })
		p.note(aheadEvent, fmt.Sprintf("%.64q: %v ahead", b.rpc.schema.RPC(), ahead), nil)
		if c.Detected != nil {
			c.Detected(p, b.rpc.schema.RPC(), ahead)
		}
	}
	return !drop
}
