package ds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/schema"
)

// Defaults of a TimeCheck.
const (
	defaultMargin = 250 * time.Millisecond
	defaultDrift  = 0.001
	maxMargin     = time.Minute
)

// TimeCheck is a [HandleOption]: the server compares the time that a player's calls of the RPC
// simulate with its own. A client that calls more often than RateHz, or with more time per call,
// therefore gains no more than the margins. It is for RPCs that move a player's character, without
// a [JitterBuffer], which takes one call per tick anyway. Zero fields mean the defaults.
//
// Each delivered call simulates one interval of RateHz, or the time in its Delta. Lost calls
// simulate no time. The difference of the two clocks is the time by which the player is ahead. It
// depends on the arrival times of datagrams, so the margins must cover their jitter, and the bursts
// after an interruption of the path.
//
// There is one clock per client id and RPC. A player has at most one binding of an RPC, and a
// client that leaves and joins again continues with its clock. The clocks of servers between which
// a player moves are independent: with each move it can gain MaxAhead.
type TimeCheck struct {
	// RateHz is the number of calls per second of an honest client, up to 1000, without Delta. The
	// default is the rate of the schema: 60, unless it was passed to [HandleSchema]. The handler
	// simulates one interval of RateHz per call. A client that declares another rate cannot bind
	// the RPC.
	RateHz float64
	// MaxAhead is the maximum time by which a player may be ahead, default 250 ms. A call that
	// exceeds it is detected.
	MaxAhead time.Duration
	// MaxBehind is the maximum time that a player can save up by not calling, default 250 ms. After
	// an interruption of the path, calls that arrive at once may simulate MaxAhead and MaxBehind.
	MaxBehind time.Duration
	// Drift is the permitted relative difference of the clocks' rates, up to 0.1, default 0.001.
	// The clocks of honest clients differ by up to 0.0002.
	Drift float64
	// Delta names the field of one number with the time that a call simulates, in seconds. Without
	// it, each call simulates one interval of RateHz. With it, clients may declare any rate up to
	// Config.Limits.MaxRate.
	Delta string
	// Resolve drops calls after a detection, as ahead_of_time, until the player is no longer ahead.
	// Otherwise all calls are delivered, and each further MaxAhead is another detection.
	Resolve bool
	// Detected, if set, is called for each detection, where handlers run, with the time by which
	// the player is ahead.
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
	check := &timeCheck{field: -1, clocks: map[uint64]*clientTime{}}
	switch {
	case c.Delta == "":
		c.RateHz = cmp.Or(c.RateHz, r.schema.RateHz())
		if err := between("RateHz", c.RateHz, minRate, 1000); err != nil {
			return fmt.Errorf("TimeCheck.%w", err)
		}
	case c.RateHz != 0:
		return errors.New("TimeCheck has RateHz and Delta: leave out one of them")
	default:
		for i := range r.schema.Fields() {
			if f := &r.schema.Fields()[i]; f.Name == c.Delta && f.Kind == schema.KindScalar && f.Values() == 1 {
				check.field = i
			}
		}
		if check.field < 0 {
			return fmt.Errorf("TimeCheck.Delta is %q, want the name of a field of one number", c.Delta)
		}
	}
	check.TimeCheck = c
	r.time = check
	return nil
}

// timeCheck is the TimeCheck of an RPC.
type timeCheck struct {
	TimeCheck
	field int // number of Delta's field, or -1

	mu     sync.Mutex
	clocks map[uint64]*clientTime // by client id: the clocks of the players, and those in left
	left   []leftClient           // in the order in which they left
}

// leftClient is a client without a session, whose clock may still be ahead.
type leftClient struct {
	id uint64
	at time.Time
}

// clock returns the clock of a client for a new binding, which must end with leave.
func (c *timeCheck) clock(id uint64) *clientTime {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.clocks[id]
	if t == nil {
		t = new(clientTime)
		c.clocks[id] = t
	}
	t.bindings++
	return t
}

// leave ends a binding of a client. Its clock is kept for MaxAhead. After that time the clock is no
// longer ahead, so a new clock permits no more than the old one.
func (c *timeCheck) leave(id uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.clocks[id]
	t.bindings--
	t.ended = now
	c.left = append(c.left, leftClient{id, now})
	done := 0
	for ; now.Sub(c.left[done].at) >= c.MaxAhead; done++ {
		l := &c.left[done]
		if t := c.clocks[l.id]; t != nil && t.bindings == 0 && t.ended.Equal(l.at) {
			delete(c.clocks, l.id)
		}
	}
	c.left = slices.Delete(c.left, 0, done)
}

// delta returns the time that a call of an RPC simulates.
func (c *timeCheck) delta(own *schema.Schema, f *schema.Frame) time.Duration {
	if c.field < 0 {
		return time.Duration(float64(time.Second) / c.RateHz)
	}
	var buf [1]float64
	seconds := own.RestoreField(buf[:0], f, c.field)[0]
	return time.Duration(min(max(seconds, 0), maxMargin.Seconds()*2) * float64(time.Second))
}

// clientTime measures the time by which a client's calls of an RPC are ahead of the server's clock.
type clientTime struct {
	bindings int       // number of bindings that use it: several while a session replaces another. Guarded by timeCheck.mu
	ended    time.Time // end of the last binding. Guarded by timeCheck.mu

	mu        sync.Mutex
	last      time.Time     // arrival of the last call
	ahead     time.Duration // time by which the client is ahead; negative if it is behind
	resolving bool
}

// call counts a call that arrived at a time. It returns the time by which the player is ahead with
// this call, and reports whether to drop the call and whether this is a detection.
func (t *clientTime) call(c *timeCheck, at time.Time, delta time.Duration) (ahead time.Duration, drop, detected bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last.IsZero() {
		t.last = at
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
