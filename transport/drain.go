package transport

import "github.com/uplink-rpc/uplink/transport/internal/wire"

// Unacked returns how many segments of reliable messages the peer has not acknowledged yet, those among them
// that were not even sent. At 0 everything has arrived.
func (c *Conn) Unacked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Unacked()
}

// Shutdown is CloseWith for an end that goes away as a whole: the peer's error wraps [ErrPeerShutdown].
func (c *Conn) Shutdown(reason string) {
	c.mu.Lock()
	c.session.Close(wire.CloseShutdown, reason)
	c.mu.Unlock()
	c.owner.closed(c)
}
