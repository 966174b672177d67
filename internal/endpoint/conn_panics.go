package endpoint

import (
	"fmt"
	"runtime/debug"

	"github.com/uplink-rpc/uplink/transport"
)

// recovered is deferred by calls that handle data from the peer of a connection. If the call
// panics, it ends the connection. Such calls release their locks by defer.
func (c *Conn) recovered(h Handler) {
	v := recover()
	if v == nil {
		return
	}
	stack := debug.Stack()
	if h, ok := h.(interface {
		Panicked(c *Conn, v any, stack []byte)
	}); ok {
		h.Panicked(c, v, stack)
	} else {
		c.loop().monitor.log.Error("handler panicked", "remote", c.RemoteAddr(), "panic", fmt.Sprint(v), "stack", string(stack))
	}
	c.finish(fmt.Errorf("%w: %v", transport.ErrPanic, v))
	c.reschedule()
}
