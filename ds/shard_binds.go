package ds

import (
	"bytes"
	"slices"
)

// bindsPerTick limits the requests to bind that a shard answers from one tick to the next, in the
// units of [bindCost]: some 1 ms of work. A request costs the server tens of microseconds, and
// many clients can send their bursts at once.
const bindsPerTick = 32

// bindQueue holds the players of a shard whose requests to bind wait for a tick. They are served in
// turn.
type bindQueue struct {
	used    int // cost of the requests since the last tick; may exceed bindsPerTick after a large request
	players []*Player
}

type waitingBind struct {
	body    []byte
	arrival arrival
}

// bindCost returns the cost of a request in limits: 1, plus 1 for each bindUnit bytes.
func bindCost(body []byte) int { return 1 + len(body)/bindUnit }

// receiveBind answers a request to bind, now or at a later tick. A repeated request, while the
// first one waits, is ignored.
func (h *shard) receiveBind(p *Player, body []byte, a *arrival) {
	q := &h.binds
	if q.used < bindsPerTick && len(q.players) == 0 {
		q.used += bindCost(body)
		p.receiveBind(body, a)
		return
	}
	if slices.ContainsFunc(p.requests, func(w waitingBind) bool { return bytes.Equal(w.body, body) }) {
		return
	}
	if len(p.requests) == 0 {
		q.players = append(q.players, p)
	}
	p.requests = append(p.requests, waitingBind{bytes.Clone(body), *a})
	p.limits.waitingBinds += bindCost(body)
}

// answerBinds answers waiting requests at a tick.
func (h *shard) answerBinds() {
	q := &h.binds
	q.used = 0
	for len(q.players) > 0 && q.used < bindsPerTick {
		p := q.players[0]
		q.players[0] = nil
		q.players = q.players[1:]
		if _, joined := h.players[p]; !joined {
			continue
		}
		w := p.requests[0]
		p.requests[0] = waitingBind{}
		if p.requests = p.requests[1:]; len(p.requests) > 0 {
			q.players = append(q.players, p)
		}
		p.limits.waitingBinds -= bindCost(w.body)
		q.used += bindCost(w.body)
		h.server.guard(p, func() { p.receiveBind(w.body, &w.arrival) })
	}
}
