package ds

import "bytes"

// bindsPerTick limits the requests to bind that a shard answers from one tick to the next, in the
// units of [bindCost]: some 2 ms of work. A request costs the server tens of microseconds, and
// many clients can send their bursts at once.
const bindsPerTick = 64

// bindQueue has the requests to bind of a shard's players that wait for a tick, the oldest first.
type bindQueue struct {
	used    int // of bindsPerTick, since the last tick; more than that after a large request
	waiting []waitingBind
}

type waitingBind struct {
	player  *Player
	body    []byte
	arrival arrival
}

// bindCost returns what a request counts in limits: 1, and once more for each bindUnit bytes.
func bindCost(body []byte) int { return 1 + len(body)/bindUnit }

// receiveBind answers a request to bind, now or at a later tick.
func (h *shard) receiveBind(p *Player, body []byte, a *arrival) {
	q := &h.binds
	if q.used >= bindsPerTick || len(q.waiting) > 0 {
		p.limits.waitingBinds += bindCost(body)
		q.waiting = append(q.waiting, waitingBind{p, bytes.Clone(body), *a})
		return
	}
	q.used += bindCost(body)
	p.receiveBind(body, a)
}

// answerBinds answers the requests that wait, at a tick.
func (h *shard) answerBinds() {
	q := &h.binds
	q.used = 0
	for len(q.waiting) > 0 && q.used < bindsPerTick {
		w := q.waiting[0]
		q.waiting[0] = waitingBind{}
		if q.waiting = q.waiting[1:]; len(q.waiting) == 0 {
			q.waiting = nil
		}
		if _, joined := h.players[w.player]; !joined {
			continue
		}
		q.used += bindCost(w.body)
		w.player.limits.waitingBinds -= bindCost(w.body)
		h.server.guard(w.player, func() { w.player.receiveBind(w.body, &w.arrival) })
	}
}
