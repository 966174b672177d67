package client

import (
	"fmt"
	"runtime/debug"

	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

// panicReason is what the server is told. It does not contain the value of the panic, which may be
// about the client's internals.
const panicReason = "internal client error"

// Panicked ends the session after a panic of a decoder of the server's data, or of a callback of
// the game. The transport calls it.
func (s *connection) Panicked(_ *transport.Conn, v any, stack []byte) {
	_ = s.panicked(s, v, stack) // which becomes the reason of the end
}

// guard calls f, a callback of the game, and ends the session if it panics. The caller holds no
// lock.
func (s *connection) guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			_ = s.panicked(s, v, debug.Stack())
		}
	}()
	f()
}

// guarded calls f, which may decode what the current server has offered, and returns its error. If
// f panics, the session ends. The caller holds no lock.
func (c *Conn) guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.panicked(c.playing(), v, debug.Stack())
		}
	}()
	return f()
}

// panicked counts and logs a panic, and ends the session of a connection, unless that is nil. It
// returns the reason. It is safe for concurrent use, and called without a lock.
func (c *Conn) panicked(s *connection, v any, stack []byte) error {
	text := shown(fmt.Sprint(v))
	err := fmt.Errorf("client: %w: %s", session.ErrPanic, text)
	c.mu.Lock()
	c.stats.Panics++
	server := c.addr
	if s != nil && s.cause == nil {
		s.cause = err
	}
	c.mu.Unlock()
	c.panicLog.Error("handler panicked", "server", server, "panic", text, "stack", string(stack))
	if s != nil {
		s.own.CloseWith(session.ErrQuit, panicReason) // the client reconnects
	}
	return err
}

// playing returns the connection that the game uses, or nil while reconnecting.
func (c *Conn) playing() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return nil
	}
	return c.active
}
