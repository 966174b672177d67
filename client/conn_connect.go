package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

const (
	// minWait and maxWait bound the time between two attempts to reconnect.
	minWait = 100 * time.Millisecond
	maxWait = 2 * time.Second
	// restartWait is the time between two attempts, with the same token, to reach a server that
	// does not run, and restartTime the time after which the client gets another token.
	restartWait = 250 * time.Millisecond
	restartTime = 15 * time.Second
	// stable is the duration of a session after which the first attempt to reconnect is made at
	// once. After shorter sessions the client waits, so a server that ends each session early does
	// not get more requests.
	stable = 10 * time.Second
)

// Dial connects to the server at addr, for example "127.0.0.1:7777" or "game.example:7777". It
// waits until the server accepts or refuses the connection, or ctx is done. If the name has several
// addresses, of IPv4 or IPv6, Dial tries another one each 250 ms and continues with the first that
// answers, and so does each attempt to reconnect. The error names the addresses that were tried. If
// the token has been used and [Config.Renew] is set, it tries once more with another token.
func Dial(ctx context.Context, addr string, cfg Config) (*Conn, error) {
	silent := cfg.Logger == nil
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := newConn(cfg, addr)
	if silent {
		c.panicLog = slog.Default()
	}
	err = c.connect(ctx, cfg.Token)
	if errors.Is(err, token.ErrUsed) && !c.tokenSpent() {
		// This handshake may have used the token, if the server's answers were lost.
		err = c.connectAgain(ctx)
	}
	if errors.Is(err, token.ErrWrongKey) && cfg.Token == (token.Token{}) {
		// The server has refused the token for tests on loopback.
		refused := fmt.Errorf("%w, and set Config.Token: the server has a key, so it requires one on loopback too", token.ErrNoToken)
		if ctx.Err() != nil {
			refused = fmt.Errorf("%w (its refusal is not authenticated; no other answer: %w)", refused, context.Cause(ctx))
		}
		err = refused
	}
	if err != nil {
		return nil, fmt.Errorf("client: dial %s: %w", addr, err)
	}
	return c, nil
}

// connect opens a session with the server that has the address c.addr. Each link has its own socket
// and address, so that no datagram of an earlier one can reach it.
func (c *Conn) connect(ctx context.Context, t token.Token) error {
	l := newLink(c, c.Server())
	if _, err := endpoint.Dial(ctx, l.addr, c.cfg.transport(t), l); err != nil {
		return err
	}
	if err := c.install(l); err != nil {
		_ = l.own.Close() // always nil
		return err
	}
	return nil
}

// install makes a link the current one, unless it or the connection has ended already.
func (c *Conn) install(l *link) error {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	c.mu.Lock()
	switch {
	case isClosed(c.closed):
		c.mu.Unlock()
		return net.ErrClosed
	case l.lost != nil:
		c.mu.Unlock()
		return l.lost
	}
	c.setNext(l)
	c.mu.Unlock()
	c.switchTo(l, time.Now())
	return nil
}

// connectAgain opens a transport connection with a new token if there is one.
func (c *Conn) connectAgain(ctx context.Context) error {
	addr, t, err := c.assigned(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.addr = addr
	c.mu.Unlock()
	for start := time.Now(); ; {
		err := c.connect(ctx, t)
		if !errors.Is(err, transport.ErrNoServer) || c.cfg.Assign != nil || time.Since(start) >= restartTime {
			return err
		}
		// The server may be restarting, and has not seen the token.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(restartWait):
		}
	}
}

// assigned returns the server to connect to, and a new token if there is one.
func (c *Conn) assigned(ctx context.Context) (addr string, t token.Token, err error) {
	switch t, addr = c.cfg.Token, c.Server(); {
	case c.cfg.Assign != nil:
		addr, t, err = c.cfg.Assign(ctx)
	case c.cfg.Renew != nil:
		t, err = c.cfg.Renew(ctx)
	}
	if err != nil {
		err = fmt.Errorf("client: no token to connect again: %w", err)
	}
	return addr, t, err
}

// disconnect handles the loss of the current link: the client reconnects, unless it may not or a
// move is under way. The caller holds c.mu.
func (c *Conn) disconnect(l *link, err error) {
	c.current = nil
	for _, b := range c.bindings {
		b.use(nil, true)
	}
	if c.move != nil { // the move is dialing: its outcome decides
		c.note(Event{State: Reconnecting, Err: err, Attempt: 1})
		return
	}
	own := errors.Is(err, transport.ErrReplaced) && time.Since(c.abandoned) < dialWait // the newer session
	if final := c.finalError(err); final != nil && l.cause == nil && !own {
		c.fail(final)
		return
	}
	if time.Since(l.opened) >= stable {
		c.wait = 0
	}
	if l.leaving {
		c.wait = max(c.wait, minWait) // the server may still be shutting down
	}
	if c.cfg.NoReconnect {
		c.fail(fmt.Errorf("%w: %w", ErrLost, err))
		return
	}
	c.startReconnecting(err)
}

// startReconnecting starts the goroutine that reconnects. The caller holds c.mu.
func (c *Conn) startReconnecting(err error) {
	c.cfg.Logger.Warn("connection lost, reconnecting", "server", c.addr, "error", err)
	c.attempt = 1
	c.note(Event{State: Reconnecting, Err: err, Attempt: 1})
	ctx, cancel := context.WithCancel(context.Background()) // independent of the context of Dial
	c.stop = cancel
	c.work.Go(func() {
		defer cancel()
		c.reconnect(ctx)
	})
}

// reconnect dials until it succeeds or the connection is closed. It gives up only if the server
// kicks the player or no token is left: a server that is full or of another version may be replaced
// soon.
func (c *Conn) reconnect(ctx context.Context) {
	for c.pause() {
		err := c.connectAgain(ctx)
		if err == nil {
			c.cfg.Logger.Info("reconnected", "server", c.Server())
			return
		}
		final := c.finalError(err)
		c.mu.Lock()
		if final != nil {
			c.fail(final)
		} else {
			c.attempt++
			c.note(Event{State: Reconnecting, Err: err, Attempt: c.attempt})
		}
		c.mu.Unlock()
		c.report()
		if final != nil {
			return
		}
		c.cfg.Logger.Debug("not reconnected", "server", c.Server(), "error", err)
	}
}

// pause waits, with exponential backoff. It returns false if the connection is closed.
func (c *Conn) pause() bool {
	c.mu.Lock()
	wait := c.wait
	c.wait = min(max(2*wait, minWait), maxWait)
	c.mu.Unlock()
	select {
	case <-c.closed:
	case <-time.After(wait):
	}
	return !isClosed(c.closed)
}

// finalError returns the error with which the connection ends for good after a session or an
// attempt to reconnect ended with err, or nil if the client can try again.
func (c *Conn) finalError(err error) error {
	switch {
	case errors.Is(err, transport.ErrKicked), errors.Is(err, transport.ErrLimit), errors.Is(err, transport.ErrProtocol):
		return fmt.Errorf("client: %w", err)
	case errors.Is(err, transport.ErrReplaced), c.tokenSpent() && refusesToken(err):
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// tokenSpent reports whether Dial used the only token.
func (c *Conn) tokenSpent() bool { return c.cfg.Token != token.Token{} && !c.renews() }

// renews reports whether the client can get further tokens.
func (c *Conn) renews() bool { return c.cfg.Renew != nil || c.cfg.Assign != nil }

// refusesToken reports whether the server refused a token, which it will do again.
func refusesToken(err error) bool {
	refusals := []error{token.ErrExpired, token.ErrUsed, token.ErrWrongKey, token.ErrWrongServer, token.ErrStale, token.ErrAhead}
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}
