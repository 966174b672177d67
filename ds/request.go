package ds

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/message"
)

// Request is a request of a client, which waits in client.Conn.Request for one call of Reply or
// Fail: in Config.Hooks.OnRequest or later, by any goroutine. A request that the game never answers
// is one of the 64 that a player may have, until the client's context or the session ends. The
// methods are safe for concurrent use.
type Request struct {
	Player  *Player
	Message []byte // belongs to the game

	id       uint32
	answered error // error for further calls of Reply and Fail; nil until the answer. Guarded by Player.asked
}

var (
	errAnswered = errors.New("ds: the request was answered before")
	errCanceled = fmt.Errorf("ds: the client does not wait for the answer any more: %w", context.Canceled)
)

// Reply sends a copy of message, at most [MaxMessage] bytes, as the answer. Errors are those of
// [Player.SendReliable]: after transport.ErrBacklog the request waits for another call. If the
// client has canceled the request, the error wraps context.Canceled. If there was an answer before,
// it is another error.
func (r *Request) Reply(msg []byte) error {
	if len(msg) > MaxMessage {
		return fmt.Errorf("ds: an answer of %d bytes, at most %d can be sent", len(msg), MaxMessage)
	}
	return r.answer(message.Answer, msg)
}

// Fail refuses the request. The client gets a *client.RequestError with the first 256 bytes of the
// reason. Errors are those of [Request.Reply].
func (r *Request) Fail(reason string) error {
	return r.answer(message.Refusal, []byte(reason[:min(len(reason), message.MaxRefusal)]))
}

func (r *Request) answer(k message.RequestKind, body []byte) error {
	p := r.Player
	p.asked.Lock()
	defer p.asked.Unlock()
	if r.answered != nil {
		return r.answered
	}
	if err := p.conn.SendReliable(message.AppendRequest(nil, k, r.id, body)); err != nil {
		return fmt.Errorf("ds: answer to player %d: %w", p.ID(), err)
	}
	r.answered = errAnswered
	delete(p.asked.open, r.id)
	return nil
}

// handle calls the game's callback unless the client has canceled the request.
func (r *Request) handle(p *Player, b []byte) {
	p.asked.Lock()
	canceled := r.answered != nil
	p.asked.Unlock()
	switch f := p.server.cfg.Hooks.OnRequest; {
	case canceled:
	case f == nil:
		_ = r.answer(message.Unhandled, nil) // fails if the session has ended, or acknowledges nothing
	default:
		p.server.asked.Add(1)
		r.Message = bytes.Clone(b)
		f(r)
	}
}
