package client

import (
	"context"
	"fmt"
	"time"
)

const (
	// leastWait and mostWait bound the time between two attempts to reconnect.
	leastWait = 100 * time.Millisecond
	mostWait  = 2 * time.Second
	// steady is how long a connection must have lasted for the next one to be
	// tried at once: a server that lets nobody stay is not hammered.
	steady = 10 * time.Second
)

// reconnect dials until it succeeds or the connection is closed. It gives up only
// if the server throws the player out, or if there is no token left: a server of another
// version, or a full one, may be another one soon.
func (c *Conn) reconnect(ctx context.Context) {
	for c.pause() {
		err := c.again(ctx)
		if err == nil {
			c.cfg.Logger.Info("reconnected", "server", c.addr)
			return
		}
		if final := c.cfg.final(err); final != nil {
			c.mu.Lock()
			c.over(final)
			c.mu.Unlock()
			return
		}
		c.cfg.Logger.Debug("not reconnected", "server", c.addr, "error", err)
	}
}

// again makes the connection once more, with another token where there are any.
func (c *Conn) again(ctx context.Context) error {
	t := c.cfg.Token
	if c.cfg.Renew != nil {
		var err error
		if t, err = c.cfg.Renew(ctx); err != nil {
			return fmt.Errorf("client: no token to connect again: %w", err)
		}
	}
	return c.connect(ctx, t)
}

// pause waits for its turn to dial, each time longer. It is false once the
// connection is closed.
func (c *Conn) pause() bool {
	c.mu.Lock()
	wait := c.wait
	c.wait = min(max(2*wait, leastWait), mostWait)
	c.mu.Unlock()
	select {
	case <-c.closed:
	case <-time.After(wait):
	}
	return !c.isClosed()
}
