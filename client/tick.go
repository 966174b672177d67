package client

import (
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// Tick repeats requests, sends what had to wait, and schedules the next Tick.
func (s *session) Tick(now time.Time) {
	next := s.regulate(now)
	for _, b := range s.all() {
		next = sooner(next, b.tick(now))
	}
	next = sooner(next, s.flushDue(now))
	s.worlds.Tick(now)
	next = sooner(next, s.continueLeaving(now))
	if !next.IsZero() {
		s.wake(next)
	}
}

// flushDue sends the collected payloads once per Config.Tick. It returns the time of the next
// flush; zero: never.
func (s *session) flushDue(now time.Time) time.Time {
	every := s.cfg.Tick
	if every == 0 {
		return time.Time{}
	}
	if !now.Before(s.nextFlush) {
		s.nextFlush = s.nextFlush.Add(every)
		if !now.Before(s.nextFlush) {
			s.nextFlush = now.Add(every)
		}
		_ = s.Flush() // the next Send returns the error
	}
	return s.nextFlush
}

// regulate measures the bit rates and applies the bandwidth limit. It returns when to call it
// again.
func (c *Conn) regulate(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return time.Time{} // install schedules the next Tick
	}
	if !c.meter.due(now) {
		return c.meter.next()
	}
	redundancy := 0
	for _, b := range c.bindings {
		redundancy = max(redundancy, b.currentRedundancy())
	}
	t := c.stats.Transport.Plus(c.link.Stats())
	elapsed, sent := c.meter.step(now, trafficOf(&t, c.link.Overhead()))
	if c.budget.step(elapsed, sent, redundancy) {
		for _, b := range c.bindings {
			b.setLimits(c.budget.limits())
		}
	}
	return c.meter.next()
}

// leave handles the server's announcement that it is about to shut down. The client then sends the
// held frames, but nothing new, waits for the acks of everything that it sent reliably, and ends
// the session. It reconnects as after a loss.
func (s *session) leave() {
	s.mu.Lock()
	announced := s.leaving
	s.leaving = true
	s.mu.Unlock()
	if !announced {
		s.cfg.Logger.Info("the server shuts down", "server", s.addr)
	}
	s.wake(time.Now())
}

// continueLeaving ends the session after leave once nothing is left to wait for. Otherwise it
// returns when to call it again; zero: never.
func (c *Conn) continueLeaving(now time.Time) time.Time {
	c.mu.Lock()
	link, leaving := c.link, c.leaving
	c.mu.Unlock()
	if !leaving || link == nil {
		return time.Time{}
	}
	ready := true
	for _, b := range c.all() {
		ready = b.leave() && ready
	}
	_ = c.out.flush(link) // nothing can be done about an error
	if !ready || link.Unacked() > 0 {
		return now.Add(transport.DefaultTick)
	}
	link.CloseWith("")
	return time.Time{}
}
