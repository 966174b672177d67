package client

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/transport"
)

// MaxMessage is the maximum size of a message in bytes.
const MaxMessage = message.MaxMessage

// roomInterval is the interval at which a goroutine that waits for room checks again.
const roomInterval = 10 * time.Millisecond

// SendReliable sends a copy of message, at most [MaxMessage] bytes, to the server, which calls
// ds.Config.OnMessage. All messages arrive, in order; those that are not acknowledged when the
// connection is lost may be lost with it. The rate limit is 64 KiB/s with a burst of 128 KiB, where
// each message counts 64 bytes more than its size. If it is exceeded, or [Transport.ReliableQueue]
// leaves no room, the error wraps transport.ErrBacklog and names the limit. While reconnecting and
// after Close, the errors are those of [Stream.Send]. SendReliable never waits: [Conn.WaitReliable]
// does.
func (c *Conn) SendReliable(message []byte) error {
	if len(message) > MaxMessage {
		return fmt.Errorf("client: a message of %d bytes, want at most %d", len(message), MaxMessage)
	}
	return c.sendMessage(message, (*endpoint.Conn).SendReliable)
}

// ReliableRoom returns the size in bytes of the largest message that [Conn.SendReliable] can send
// now, up to [MaxMessage]. The rate limit and [Transport.ReliableQueue] determine it. It is 0 while
// reconnecting.
func (c *Conn) ReliableRoom() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reliableRoom()
}

func (c *Conn) reliableRoom() int {
	if c.current == nil || c.current.leaving {
		return 0
	}
	rate := message.ClientMessages.Burst - c.messages.Used(time.Since(c.start), message.ClientMessages) - message.MessageCost(0)
	return max(min(c.current.own.ReliableRoom()-1, int(rate), MaxMessage), 0)
}

// WaitReliable waits until there is room for a reliable message of n bytes, up to [MaxMessage],
// also while the client reconnects. Another goroutine may take the room first. The error is that of
// the context, or after the end of the connection that of [Stream.Send]. Callbacks of the
// connection must not call it, because there is no new room until they return.
func (c *Conn) WaitReliable(ctx context.Context, n int) error {
	if n > MaxMessage {
		return fmt.Errorf("client: a message of %d bytes, want at most %d", n, MaxMessage)
	}
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		c.mu.Lock()
		room, gone := c.reliableRoom(), c.gone
		c.mu.Unlock()
		switch {
		case gone != nil || isClosed(c.closed):
			return c.linkError("wait for room", net.ErrClosed)
		case room >= n:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("client: %w: no room for %d bytes of reliable data: %w", transport.ErrBacklog, n, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// SendUnreliable sends a copy of message, at most transport.MaxPayload-1 bytes, to the server,
// which calls ds.Config.Hooks.OnUnreliable if the message arrives. It may be lost or arrive out of
// order. It has a datagram of its own. The rate limit is that of SendReliable, with which it is
// shared; errors are those of SendReliable. SendUnreliable never waits.
func (c *Conn) SendUnreliable(message []byte) error {
	if len(message) >= transport.MaxPayload {
		return fmt.Errorf("client: an unreliable message of %d bytes, want at most %d", len(message), transport.MaxPayload-1)
	}
	return c.sendMessage(message, (*endpoint.Conn).Send)
}

func (c *Conn) sendMessage(msg []byte, send func(*endpoint.Conn, []byte) error) error {
	c.mu.Lock() // held while it sends, so that no handover starts in the meantime
	l, err := c.admit(len(msg))
	if err == nil {
		err = send(l.own, message.AppendMessage(make([]byte, 0, 1+len(msg)), msg))
	}
	c.mu.Unlock()
	return c.linkError("send a message", err)
}

// admit counts a message of a size in bytes, and returns the link for it. The caller holds c.mu.
func (c *Conn) admit(size int) (*link, error) {
	switch {
	case c.current == nil || c.current.leaving:
		return nil, net.ErrClosed
	case !c.messages.Take(time.Since(c.start), message.ClientMessages, message.MessageCost(size)):
		limit := message.ClientMessages
		return nil, fmt.Errorf("%w: %d bytes would exceed %.0f KiB/s with bursts of %.0f KiB", transport.ErrBacklog, size, limit.PerSecond/1024, limit.Burst/1024)
	}
	return c.current, nil
}

// Request sends a copy of msg, at most [MaxMessage] bytes, to the server, which calls
// ds.Config.Hooks.OnRequest, and waits for the answer of the game. The reliable channel carries
// both: requests arrive in one order with the messages of SendReliable, and answers with those of
// ds.Player.SendReliable. Answers may come in another order than their requests.
//
// The error is a [*RequestError] if the game refused the request, transport.ErrUnhandled if the
// server handles no requests, and the cause of ctx if that is done before the answer arrives; the
// game may have handled the request in this case. If the session ends before the answer, the error
// wraps the reason, an error of package transport: a request is never repeated in another session.
// At most 64 requests may wait for an answer. Beyond that, and above the rate limit, which is that
// of SendReliable, the error is transport.ErrBacklog; other errors are those of SendReliable. A
// callback on the goroutine that receives, such as Config.OnMessage, must not wait for an answer.
func (c *Conn) Request(ctx context.Context, msg []byte) ([]byte, error) {
	if len(msg) > MaxMessage {
		return nil, fmt.Errorf("client: a request of %d bytes, want at most %d", len(msg), MaxMessage)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("client: request: %w", context.Cause(ctx))
	}
	got := make(chan answer, 1)
	c.mu.Lock()
	l, id, err := c.ask(msg, got)
	c.mu.Unlock()
	if err != nil {
		return nil, c.linkError("request", err)
	}
	select {
	case a := <-got:
		if a.err != nil {
			return nil, fmt.Errorf("client: request: %w", a.err)
		}
		return a.message, nil
	case <-ctx.Done():
		// The server counts the request until it is answered or canceled.
		if l.own.SendReliable(message.AppendRequest(nil, message.Cancel, id, nil)) == nil {
			c.mu.Lock()
			delete(l.requests, id)
			c.mu.Unlock()
		}
		return nil, fmt.Errorf("client: request: %w", context.Cause(ctx))
	}
}

// ask sends a request, and returns its link and id. The caller holds c.mu, so that no handover
// starts in the meantime.
func (c *Conn) ask(msg []byte, got chan<- answer) (l *link, id uint32, err error) {
	waiting := 0
	for _, l := range c.links() {
		waiting += len(l.requests)
	}
	if waiting >= message.MaxRequests {
		return nil, 0, fmt.Errorf("%w: %d requests wait for an answer, the maximum", transport.ErrBacklog, waiting)
	}
	if l, err = c.admit(len(msg)); err != nil {
		return nil, 0, err
	}
	c.lastRequest++
	if err := l.own.SendReliable(message.AppendRequest(nil, message.Ask, c.lastRequest, msg)); err != nil {
		return nil, 0, err
	}
	if l.requests == nil {
		l.requests = requests{}
	}
	l.requests[c.lastRequest] = got
	return l, c.lastRequest, nil
}

// OpenStream opens a stream to the server, which calls ds.Config.Hooks.OnStream with it. Streams
// are for data that is too large for messages, such as levels and replays. Streams do not delay
// messages, and are not ordered with them nor with each other. They share
// Config.Transport.StreamRate. The name has 1 to 128 bytes and does not begin with "uplink.". If
// ctx is done before the stream has ended, the stream is aborted with the cause of ctx.
//
// OpenStream never waits. At most 8 streams are open at a time, and 16 a second can be opened, with
// bursts of 32; beyond that the error is transport.ErrBacklog. A stream ends with its session: it
// does not continue after reconnecting. While reconnecting and after Close, the errors are those of
// [Stream.Send].
func (c *Conn) OpenStream(ctx context.Context, name string) (transport.StreamWriter, error) {
	c.mu.Lock() // held while it opens the stream, so that no handover starts in the meantime
	if c.current == nil || c.current.leaving {
		c.mu.Unlock()
		return nil, c.noLink()
	}
	w, err := c.current.streams.Open(ctx, time.Now(), name)
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("client: open a stream: %w", err)
	}
	return w, nil
}
