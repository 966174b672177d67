package replication

import (
	"math"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

const (
	// keyframeWork is the work of a large keyframe, in encodings against a baseline. A keyframe
	// codes all objects.
	keyframeWork = 4
	// maxDebt is the maximum of plan.debt, in ticks.
	maxDebt = 64
	// maxEncodings is the maximum number of encodings of a tick.
	maxEncodings = 8
	// planWork is the number of clients that choose examines per tick, counting repetitions. If
	// there are more than half as many clients, choose examines each of them twice.
	planWork = 512
)

// plan chooses the baselines against which a tick is encoded, at most room. Clients without any of
// these baselines receive nothing. The plan improves from tick to tick, because the ages of the
// clients' baselines change slowly.
type plan struct {
	room    int                  // at most maxEncodings
	chosen  [maxStep + 1]uint64  // chosen baselines by step; bit d stands for distance d
	slots   [maxEncodings]choice // the same baselines, one per slot
	turn    int                  // the slot that was replaced last
	debt    int                  // number of future ticks in which one slot stays unused because of keyframes
	closed  bool                 // one slot was unused in the newest tick
	clients []clientBaselines
	gains   [maxStep + 1][snapshot.Ring]int // scratch of replace, by step and distance
}

// maxStep is the maximum of snapshot.Baseline.Step.
const maxStep = 4

// choice is a step and a distance; distance 0 means none.
type choice struct{ step, distance int }

// clientBaselines describes the baselines that a client has. In masks, bit d stands for distance d.
type clientBaselines struct {
	step       int
	full, bare uint64 // baselines with all references at step, and all baselines
	waits      bool   // nothing was sent to the client for maxWait
	late       bool   // the baselines are older than the round trip explains, or lack references
}

// of returns the baselines that are suitable for references at a step.
func (c *clientBaselines) of(step int) uint64 {
	if step == 0 {
		return c.bare
	}
	return c.full
}

// judge sets late, and reports whether the client's baselines affect the plan. rtt is the
// round-trip time in snapshots. every is the number of snapshots from one message of a player to
// the next. Baselines that are much older than the round trip do not affect the plan, because the
// client has not received anything for some time, or its acks are false. every is the same for a
// client to which the server sends less often for that reason.
func (c *clientBaselines) judge(rtt float64, every int) bool {
	newest := bits.TrailingZeros64(c.bare)
	c.late = c.full == 0 || newest > 4*every+int(rtt*5/4)
	return newest <= 8*every+3*int(rtt)
}

// costs contains the estimated relative size of a snapshot by the distance to its baseline. The
// size grows about with the square root of the distance. The last element is the size without a
// baseline.
var costs = func() (c [snapshot.Ring + 1]int) {
	for d := range c {
		c[d] = int(1024 * math.Sqrt(float64(d)))
	}
	c[snapshot.Ring] *= 2
	return c
}()

// reset removes all clients.
func (p *plan) reset() { p.clients = p.clients[:0] }

// add adds a client. If none of its baselines has references, its baselines count with step 0.
func (p *plan) add(c clientBaselines) {
	switch {
	case c.full != 0:
		p.clients = append(p.clients, c)
	case c.bare != 0:
		c.step = 0
		p.clients = append(p.clients, c)
	}
}

// choose replaces some of the chosen baselines. Each new baseline minimizes the sum of the costs of
// all timely clients. If no client is timely, all clients count.
//
// The last slot is for clients that are late or wait, and have none of the other baselines. So
// clients with packet loss, stalls or false acks do not compete with the others.
//
// To compensate for keyframes, one slot stays unused for some ticks. So clients that join do not
// increase the work per tick.
func (p *plan) choose() {
	last := p.room - 1
	n := last // number of slots for timely clients
	switch {
	case p.debt > 0 && last > 1:
		n--
		p.debt--
		p.closed = true
		p.clear(&p.slots[n])
	case p.closed:
		p.closed = false
		p.turn = last - 2 // the slot that was unused is the next one
	}
	for range min(max(planWork/max(1, len(p.clients)), 2), n) {
		p.turn = (p.turn + 1) % n
		p.replaceFirst(&p.slots[p.turn], timely, everyone)
	}
	p.replaceFirst(&p.slots[last], unserved, timely)
}

// timely, unserved and everyone select clients. have is the mask of the chosen baselines that the
// client has.
func timely(c *clientBaselines, _ uint64) bool { return !c.late }

func unserved(c *clientBaselines, have uint64) bool { return have == 0 && (c.late || c.waits) }

func everyone(*clientBaselines, uint64) bool { return true }

// replaceFirst replaces a choice by the best one for the clients that first selects. If there is no
// such baseline, it takes the best one for the clients that second selects.
func (p *plan) replaceFirst(s *choice, first, second func(c *clientBaselines, have uint64) bool) {
	if p.replace(s, first); s.distance == 0 {
		p.replace(s, second)
	}
}

// owe adds the work of keyframes that were encoded to debt.
func (p *plan) owe(keyframes int) { p.debt = min(p.debt+keyframes*keyframeWork, maxDebt) }

func (p *plan) clear(s *choice) {
	p.chosen[s.step] &^= 1 << s.distance
	*s = choice{}
}

// replace replaces a choice by the baseline that reduces the costs of the selected clients most, or
// by none.
func (p *plan) replace(s *choice, selected func(c *clientBaselines, have uint64) bool) {
	p.clear(s)
	var gained [maxStep + 1]uint64 // distances of which gains is set, as bits
	for i := range p.clients {
		c := &p.clients[i]
		all := c.of(c.step)
		have := all & p.chosen[c.step]
		if !selected(c, have) {
			continue
		}
		cost, gains := costs[bits.TrailingZeros64(have)], &p.gains[c.step]
		newer := all & (have&-have - 1)
		gained[c.step] |= newer
		for ; newer != 0; newer &= newer - 1 {
			d := bits.TrailingZeros64(newer)
			gains[d] += cost - costs[d]
		}
	}
	best := 0
	for step, distances := range gained {
		for ; distances != 0; distances &= distances - 1 {
			d := bits.TrailingZeros64(distances)
			if gain := p.gains[step][d]; gain > best {
				best, *s = gain, choice{step, d}
			}
			p.gains[step][d] = 0
		}
	}
	if s.distance > 0 {
		p.chosen[s.step] |= 1 << s.distance
	}
}

// baseline returns the newest baseline of the plan that a client has.
func (p *plan) baseline(c clientBaselines) (b snapshot.Baseline, ok bool) {
	for _, step := range [...]int{c.step, 0} {
		if have := c.of(step) & p.chosen[step]; have != 0 {
			return snapshot.Baseline{Distance: bits.TrailingZeros64(have), Step: step}, true
		}
	}
	return snapshot.Baseline{}, false
}
