package ds

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/control"
)

var (
	errAnswered = errors.New("ds: the request was answered before")
	errCanceled = fmt.Errorf("ds: the client does not wait for the answer any more: %w", context.Canceled)
)

// Reply sends a copy of message, at most [MaxMessage] bytes, as the answer. Errors are those of
// [Player.SendReliable]: after session.ErrBacklog the request waits for another call. If the client
// has canceled the request, the error wraps context.Canceled. If there was an answer before, it is
// another error.
func (r *Request) Reply(message []byte) error {
	if len(message) > MaxMessage {
		return fmt.Errorf("ds: an answer of %d bytes, at most %d can be sent", len(message), MaxMessage)
	}
	return r.answer(control.Answer, message)
}

// Fail refuses the request. The client gets a *session.RequestError with the first 256 bytes of the
// reason. Errors are those of [Request.Reply].
func (r *Request) Fail(reason string) error {
	return r.answer(control.Refusal, []byte(reason[:min(len(reason), control.MaxRefusal)]))
}

func (r *Request) answer(k control.RequestKind, body []byte) error {
	p := r.Player
	p.asked.Lock()
	defer p.asked.Unlock()
	if r.answered != nil {
		return r.answered
	}
	if err := p.conn.SendReliable(control.AppendRequest(nil, k, r.id, body)); err != nil {
		return fmt.Errorf("ds: answer to player %d: %w", p.ID(), err)
	}
	r.answered = errAnswered
	delete(p.asked.open, r.id)
	return nil
}

// receiveRequest handles a message Request.
func (p *Player) receiveRequest(b []byte, a *arrival) {
	k, id, body, err := control.ParseRequest(b)
	switch {
	case err != nil || k != control.Ask && k != control.Cancel:
		p.reject(a, Malformed, "malformed request")
	case k == control.Ask && !p.handover.switched.IsZero():
		p.reject(a, UnknownRPC, "a request after the switch to another server")
	case k == control.Ask:
		if r := p.openRequest(id, a); r != nil {
			p.receiveMessage(body, a, r.handle)
		}
	case !p.sent.Take(a.since, control.DSMessages, control.MessageCost(0)):
		p.drop(a.at, RateLimited)
		p.exceed(messagesExceeded, control.DSMessages.PerSecond/1024)
	default:
		p.cancelRequest(id)
	}
}

// openRequest registers a request, or ends the session and returns nil.
func (p *Player) openRequest(id uint32, a *arrival) *Request {
	p.asked.Lock()
	defer p.asked.Unlock()
	switch {
	case len(p.asked.open) >= control.MaxRequests:
		p.drop(a.at, RateLimited)
		p.exceed("more than %d requests without an answer", control.MaxRequests)
		return nil
	case p.asked.open[id] != nil:
		p.reject(a, Malformed, "two requests with the same id")
		return nil
	case p.asked.open == nil:
		p.asked.open = map[uint32]*Request{}
	}
	r := &Request{Player: p, id: id}
	p.asked.open[id] = r
	return r
}

// cancelRequest handles the end of the client's wait for an answer, which may be on its way.
func (p *Player) cancelRequest(id uint32) {
	p.asked.Lock()
	defer p.asked.Unlock()
	if r := p.asked.open[id]; r != nil {
		r.answered = errCanceled
		delete(p.asked.open, id)
	}
}

// handle calls the game's callback unless the client has canceled the request.
func (r *Request) handle(p *Player, b []byte) {
	p.asked.Lock()
	canceled := r.answered != nil
	p.asked.Unlock()
	switch f := p.server.cfg.OnRequest; {
	case canceled:
	case f == nil:
		_ = r.answer(control.Unhandled, nil) // fails if the session has ended, or acknowledges nothing
	default:
		p.server.asked.Add(1)
		r.Message = bytes.Clone(b)
		f(r)
	}
}

// receiveMessage calls f with a message of the game, where handlers run. On the reliable channel
// none may be missing: if one is dropped, the session ends.
func (p *Player) receiveMessage(b []byte, a *arrival, f func(*Player, []byte)) {
	s, exceed := p.server, p.exceed
	if !a.reliable {
		exceed = func(string, ...any) {}
	}
	switch {
	case p.kicked.Load():
		p.drop(a.at, Kicked)
	case len(b) > MaxMessage:
		p.drop(a.at, Malformed)
		p.violate(fmt.Sprintf("a message of %d bytes, at most %d are permitted", len(b), MaxMessage))
	case !p.sent.Take(a.since, control.DSMessages, control.MessageCost(len(b))):
		p.drop(a.at, RateLimited)
		exceed(messagesExceeded, control.DSMessages.PerSecond/1024)
	case f == nil:
		p.drop(a.at, UnknownRPC)
	case !s.cfg.Poll:
		s.guard(p, func() { f(p, b) })
	default:
		const overhead = 32 // bytes
		b = bytes.Clone(b)
		if !s.queue.push(&p.quota, overhead+len(b), call(func() {
			if p.kicked.Load() {
				p.countDrop(Kicked)
				return
			}
			s.guard(p, func() { f(p, b) })
		})) {
			p.drop(a.at, QueueFull)
			exceed(queueExceeded, s.cfg.QueueBytes)
		}
	}
}
