package client

import (
	"bytes"
	"context"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/message"
	"github.com/uplink-rpc/uplink/session"
	"github.com/uplink-rpc/uplink/transport"
)

// requests are the requests of a connection. Conn.mu guards them.
type requests struct {
	last    uint32 // id of the newest one, over all reconnections
	waiting map[uint32]request
}

// request is one that waits for an answer over a link.
type request struct {
	link *transport.Conn
	got  chan<- answer
}

type answer struct {
	message []byte
	err     error
}

// Request sends a copy of message, at most [MaxMessage] bytes, to the server, which calls
// ds.Config.OnRequest, and waits for the answer of the game. The reliable channel carries both:
// requests arrive in one order with the messages of SendReliable, and answers with those of
// ds.Player.SendReliable. Answers may come in another order than their requests.
//
// The error is a [*session.RequestError] if the game refused the request, session.ErrUnhandled if
// the server handles no requests, and the cause of ctx if that is done before the answer arrives;
// the game may have handled the request in this case. If the session ends before, the error wraps
// the reason, one of package session: a request is never repeated in another session. At most 64
// requests may wait for an answer. Beyond that, and above the rate limit, which is that of
// SendReliable, the error is session.ErrBacklog; other errors are those of SendReliable. A callback
// on the goroutine that receives, such as Config.OnMessage, must not wait for an answer.
func (c *Conn) Request(ctx context.Context, msg []byte) ([]byte, error) {
	if len(msg) > MaxMessage {
		return nil, fmt.Errorf("client: a request of %d bytes, want at most %d", len(msg), MaxMessage)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("client: request: %w", context.Cause(ctx))
	}
	got := make(chan answer, 1)
	c.mu.Lock()
	link, id, err := c.ask(msg, got)
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
		if link.SendReliable(message.AppendRequest(nil, message.Cancel, id, nil)) == nil {
			c.forget(id)
		}
		return nil, fmt.Errorf("client: request: %w", context.Cause(ctx))
	}
}

// ask sends a request, and returns its link and id. The caller holds c.mu: a handover may not come
// in between.
func (c *Conn) ask(msg []byte, got chan<- answer) (*transport.Conn, uint32, error) {
	r := &c.requests
	if len(r.waiting) >= message.MaxRequests {
		return nil, 0, fmt.Errorf("%w: %d requests wait for an answer, the maximum", session.ErrBacklog, len(r.waiting))
	}
	link, err := c.admit(len(msg))
	if err != nil {
		return nil, 0, err
	}
	if r.waiting == nil {
		r.waiting = map[uint32]request{}
	}
	r.last++
	if err := link.SendReliable(message.AppendRequest(nil, message.Ask, r.last, msg)); err != nil {
		return nil, 0, err
	}
	r.waiting[r.last] = request{link, got}
	return link, r.last, nil
}

func (c *Conn) forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests.waiting, id)
}

// answered handles the answer to a request. The client may have canceled the request.
func (c *Conn) answered(link *transport.Conn, b []byte) error {
	k, id, body, err := message.ParseRequest(b)
	if err != nil {
		return err
	}
	a := answer{message: bytes.Clone(body)}
	switch k {
	case message.Answer:
	case message.Refusal:
		a.err = &session.RequestError{Reason: string(body)}
	case message.Unhandled:
		a.err = fmt.Errorf("%w: ds.Config.OnRequest is not set", session.ErrUnhandled)
	default:
		return fmt.Errorf("%w: a request to a client", message.ErrMalformed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.requests.waiting[id]; ok && r.link == link {
		r.got <- a
		delete(c.requests.waiting, id)
	}
	return nil
}

// fail fails the requests that wait for an answer over a link, because its session has ended. The
// caller holds Conn.mu.
func (r *requests) fail(link *transport.Conn, err error) {
	for id, w := range r.waiting {
		if w.link == link {
			w.got <- answer{err: err}
			delete(r.waiting, id)
		}
	}
}

// over returns the number of requests that wait for an answer over a link. The caller holds
// Conn.mu.
func (r *requests) over(link *transport.Conn) (n int) {
	for _, w := range r.waiting {
		if w.link == link {
			n++
		}
	}
	return n
}
