package client

import (
	"fmt"
	"runtime/debug"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/session"
)

// State returns the state of the connection. Config.OnEvent is called when it changes.
func (c *Conn) State() session.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// note records an event, which report reports. Nothing follows Disconnected. The caller holds c.mu.
func (c *Conn) note(e session.Event) {
	if c.state == session.Disconnected {
		return
	}
	c.state = e.State
	if c.cfg.OnEvent != nil {
		c.events = append(c.events, e)
	}
}

// report calls Config.OnEvent with the events that were recorded, in order. If another goroutine
// does that already, it is left to it. The caller does not hold c.mu.
func (c *Conn) report() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reporting {
		return
	}
	c.reporting = true
	defer func() { c.reporting = false }() // also after runtime.Goexit
	for len(c.events) > 0 {
		e := c.events[0]
		c.events = c.events[1:]
		c.reportEvent(e)
	}
}

// reportEvent calls Config.OnEvent. The caller holds c.mu, which is released during the call.
func (c *Conn) reportEvent(e session.Event) {
	c.mu.Unlock()
	defer c.mu.Lock()
	_ = c.guarded(func() error { // which logs the panic
		c.cfg.OnEvent(e)
		return nil
	})
}

// noteTickRates logs the worlds whose tick rate has left 1 ± 0.05 or returned, and records their
// events.
func (c *Conn) noteTickRates() {
	for _, r := range c.worlds.RateNews() {
		if r.Off {
			c.cfg.Logger.Warn("tick rate of the server is off: playback follows in slow or fast motion", "world", r.World, "rate", r.Rate)
		} else {
			c.cfg.Logger.Info("tick rate of the server is normal again", "world", r.World, "rate", r.Rate)
		}
		c.mu.Lock()
		c.note(session.Event{State: c.state, World: r.World, TickRate: r.Rate})
		c.mu.Unlock()
	}
}

// notePartialViews logs the worlds whose views were shown before they were complete, and records
// their events.
func (c *Conn) notePartialViews() {
	for _, world := range c.worlds.PartialNews() {
		c.cfg.Logger.Warn("world shown before all objects of the view have arrived: raise ds.WorldConfig.EnterBytes or SendHz", "world", world)
		c.mu.Lock()
		c.note(session.Event{State: c.state, World: world, Partial: true})
		c.mu.Unlock()
	}
}

// noteMismatches logs and counts the mismatches that were added, and records their events. The
// caller does not hold c.mu, and calls report.
func (c *Conn) noteMismatches() {
	list := c.mismatches.take()
	if len(list) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range list {
		c.stats.Mismatches++
		c.cfg.Logger.Warn("both ends differ", "error", e)
		c.note(session.Event{State: c.state, Mismatch: e})
	}
}

// worldReport handles what a subscription found in an offer.
func (c *Conn) worldReport(world string, d message.Differences, err error) {
	if err != nil {
		c.cfg.Logger.Warn("world refused", "world", world, "error", err)
		return
	}
	c.mismatches.add(&MismatchError{World: world, Here: d.Answering, There: d.Asking})
}

// panicReason is what the server is told. It does not contain the value of the panic, which may be
// about the client's internals.
const panicReason = "internal client error"

// guarded calls f, which may decode what the current server has offered, and returns its error. If
// f panics, the session ends. The caller holds no lock.
func (c *Conn) guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked(c.link(), v, debug.Stack())
		}
	}()
	return f()
}

// panicked counts and logs a panic, and ends the session of a link, unless that is nil. It
// returns the reason. It is safe for concurrent use, and called without a lock.
func (c *Conn) panicked(l *link, v any, stack []byte) error {
	text := shown(fmt.Sprint(v))
	err := fmt.Errorf("client: %w: %s", session.ErrPanic, text)
	c.mu.Lock()
	c.stats.Panics++
	server := c.addr
	if l != nil && l.cause == nil {
		l.cause = err
	}
	c.mu.Unlock()
	c.panicLog.Error("handler panicked", "server", server, "panic", text, "stack", string(stack))
	if l != nil {
		l.own.CloseWith(session.ErrQuit, panicReason) // the client reconnects
	}
	return err
}
