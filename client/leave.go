package client

import (
	"time"

	"github.com/uplink-rpc/uplink/transport"
)

// When the server is about to shut down it says so. The client then sends what it
// holds back, but nothing new, waits until all that it sent reliably is there, and
// ends the connection. It is made again like one that was lost.

// leave begins to leave the server.
func (e *events) leave() {
	e.mu.Lock()
	begun := e.leaving
	e.leaving = true
	e.mu.Unlock()
	if !begun {
		e.cfg.Logger.Info("the server shuts down", "server", e.addr)
	}
}

// goOnLeaving ends the connection once there is nothing left to wait for. Until then it says when to look again.
func (e *events) goOnLeaving(now time.Time) time.Time {
	c := e.Conn
	c.mu.Lock()
	link, leaving := c.link, c.leaving
	c.mu.Unlock()
	if !leaving || link == nil {
		return time.Time{}
	}
	ready := true
	for _, s := range c.all() {
		ready = s.leave() && ready
	}
	_ = c.out.flush(link) // nothing can be done about an error
	if !ready || link.Unacked() > 0 {
		return now.Add(transport.DefaultTick)
	}
	link.CloseWith("")
	return time.Time{}
}

// leave sends what is held back and stops the stream until rebind. It is false if a
// payload still waits for room on the reliable channel.
func (s *stream) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued {
		_ = s.transmit() // the next tick tries again
		if s.queued {
			return false
		}
	}
	if s.enc != nil {
		_ = s.sendHeld() // lost as datagrams may be
	}
	s.stop()
	return true
}
