package client

import (
	"time"

	"github.com/uplink-rpc/uplink/session"
)

// maxSilence is the time without an answer after which a client that plays looks for another
// server.
const maxSilence = 1250 * time.Millisecond

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

// noteSilence records whether the server is heard. The caller holds c.mu.
func (c *Conn) noteSilence(now time.Time) {
	switch silent := c.link.Unanswered() || c.link.Silence(now) >= maxSilence && c.standby != nil; {
	case silent && c.state == session.Connected:
		c.note(session.Event{State: session.Interrupted})
	case !silent && c.state == session.Interrupted:
		c.note(session.Event{State: session.Connected})
	}
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

// lossDecay is the part of its weight that a datagram keeps for the measured loss after a window of
// one second.
const lossDecay = 0.9

// recentLoss measures the packet loss of the last seconds.
type recentLoss struct {
	link                    any     // for which the totals are
	totalLost, totalArrived uint64  // at the end of the last window
	lost, arrived           float64 // decaying
}

// step ends a window of a link, whose totals it gets, and returns the loss.
func (r *recentLoss) step(link any, lost, arrived uint64) float64 {
	if r.link != link {
		*r = recentLoss{link: link}
	}
	r.lost = lossDecay*r.lost + float64(lost-min(lost, r.totalLost))
	r.arrived = lossDecay*r.arrived + float64(arrived-min(arrived, r.totalArrived))
	r.totalLost, r.totalArrived = lost, arrived
	if r.lost == 0 {
		return 0
	}
	return r.lost / (r.lost + r.arrived)
}
