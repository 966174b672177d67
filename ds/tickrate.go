package ds

import (
	"fmt"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/internal/serverclock"
)

// tickClock measures the rate of ticks from the times at which they begin.
type tickClock struct {
	what string  // name of the ticks in events and logs
	hz   float64 // nominal rate, in ticks per second

	mu      sync.Mutex
	start   time.Time
	monitor serverclock.Monitor
	off     recentMax // recent maximum error of a client's clock on a path without jitter
}

func newTickClock(what string, hz float64, interval time.Duration) *tickClock {
	return &tickClock{what: what, hz: hz, start: time.Now(), monitor: serverclock.Monitor{Clock: serverclock.New(serverclock.Remote(interval))}}
}

// tick records that a tick begins. at is the nominal time from tick 0 to this tick. It reports to
// the server when the rate leaves 1 ± 0.05 and when it returns.
func (c *tickClock) tick(s *Server, now time.Time, at time.Duration) {
	c.mu.Lock()
	own := now.Sub(c.start)
	if shown, ok := c.monitor.Server(own, 0); ok {
		c.off.add(own, max(shown-at, at-shown))
	}
	changed, off, rate := c.monitor.Watch(own, at), c.monitor.Off, c.monitor.Rate()
	c.mu.Unlock()
	if !changed || s == nil {
		return
	}
	text := fmt.Sprintf("%s: %.3g of %.3g ticks a second", c.what, rate*c.hz, c.hz)
	if !off {
		s.events.add(event{typ: tickRateNormalEvent, text: text, at: now})
		s.cfg.Logger.Info("tick rate is normal again", "of", c.what, "rate", rate)
		return
	}
	s.events.add(event{typ: tickRateOffEvent, text: text, at: now})
	s.cfg.Logger.Warn("tick rate is off: clients follow in slow or fast motion", "of", c.what, "rate", rate, "ticks_per_second", rate*c.hz,
		"hint", "if the server is overloaded, skip tick numbers, or run several ticks at once, so that ticks follow real time")
}

// rate returns the measured rate: 1 is the nominal one.
func (c *tickClock) rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.monitor.Rate()
}

// viewer returns the rate and uncertainty of the ticks for a [rewind.Viewer].
func (c *tickClock) viewer(now time.Time) (rate float64, unsettled time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := now.Sub(c.start)
	// The factor of 1.5 accounts for the delays after a change: the client notices it later, and
	// the mean slack of its inputs changes later still.
	return c.monitor.Rate(), (c.off.get(own) * 3 / 2).Truncate(time.Millisecond)
}

const (
	// recentSpan is the time for which a client's clock may still be off after the ticks are
	// regular again.
	recentSpan = 2 * time.Second
	// maxUnsettled is the maximum error of a client's clock that is assumed. An overload that
	// halves the rate of ticks causes this error.
	maxUnsettled = 600 * time.Millisecond
)

// recentMax is the maximum, from 0 to maxUnsettled, over the last one to two periods of recentSpan.
type recentMax struct {
	now, before time.Duration
	since       time.Duration
}

func (m *recentMax) add(now, v time.Duration) {
	m.advance(now)
	m.now = max(m.now, min(v, maxUnsettled))
}

func (m *recentMax) get(now time.Duration) time.Duration {
	m.advance(now)
	return max(m.now, m.before)
}

func (m *recentMax) advance(now time.Duration) {
	if now-m.since > recentSpan {
		m.now, m.before = 0, m.now
		if now-m.since > 2*recentSpan {
			m.before = 0
		}
		m.since = now
	}
}
