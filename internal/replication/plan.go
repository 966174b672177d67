package replication

import (
	"math"
	"math/bits"

	"github.com/uplink-rpc/uplink/internal/snapshot"
)

const (
	// keyframeWork is the number of encodings that take about as long as a keyframe, which codes
	// all objects.
	keyframeWork = 4
	// maxDebt bounds for how many ticks keyframes are made up for.
	maxDebt = 64
	// maxEncodings is the maximum number of encodings of a tick.
	maxEncodings = 8
	// planWork is the number of clients that choose examines per tick, if there are as many. It
	// examines each at least twice.
	planWork = 512
)

// plan is the baselines against which a tick is encoded: at most room, whatever the clients have.
// Clients that have none of them receive nothing. The plan is improved from tick to tick: how old
// the baselines of clients are changes little.
type plan struct {
	room    int                  // at most maxEncodings
	chosen  [maxStep + 1]uint64  // distances, by step
	slots   [maxEncodings]choice // the same
	turn    int                  // the slot that was replaced last
	debt    int                  // ticks that are encoded against one baseline less, for keyframes
	closed  bool                 // the newest tick was one of them
	clients []clientBaselines
	gains   [maxStep + 1][snapshot.Ring]int // scratch of replace
}

// maxStep is the maximum of snapshot.Baseline.Step.
const maxStep = 4

// choice is a step and a distance; distance 0 means none.
type choice struct{ step, distance int }

// clientBaselines is the distances of the baselines that a client has.
type clientBaselines struct {
	step       int
	full, bare uint64 // with references at step, and all
	waits      bool   // nothing was sent to the client for some time
	late       bool   // they are older than the round trip explains, or lack references
}

// of returns those of a step.
func (c *clientBaselines) of(step int) uint64 {
	if step == 0 {
		return c.bare
	}
	return c.full
}

// judge sets whether the client is late, and reports whether its baselines affect the plan, given
// the round trip in snapshots, and the number of snapshots from one message of a player to the
// next. If they are older, the client has not received anything for some time, or pretends so. That
// the server sends to it less often for that reason does not count.
func (c *clientBaselines) judge(rtt float64, every int) bool {
	newest := bits.TrailingZeros64(c.bare)
	c.late = c.full == 0 || newest > 4*every+int(rtt*5/4)
	return newest <= 8*every+3*int(rtt)
}

// costs are the sizes of snapshots by the distance to the baseline, relative to each other: they
// grow about with the square root. The last one is that of having no baseline.
var costs = func() (c [snapshot.Ring + 1]int) {
	for d := range c {
		c[d] = int(1024 * math.Sqrt(float64(d)))
	}
	c[snapshot.Ring] *= 2
	return c
}()

// reset forgets the clients.
func (p *plan) reset() { p.clients = p.clients[:0] }

// add adds a client. Its bare baselines count if it has no others.
func (p *plan) add(c clientBaselines) {
	switch {
	case c.full != 0:
		p.clients = append(p.clients, c)
	case c.bare != 0:
		c.step = 0
		p.clients = append(p.clients, c)
	}
}

// choose replaces some of the chosen baselines, each by the one for which the sum of the costs of
// all timely clients is least. The last one belongs to clients that are late or wait and have none
// of the others, so that clients that lose, stall or lie do not compete with the others. Without
// timely clients, all choose. After keyframes one of the baselines is missing for some ticks, so
// that clients that join do not raise the work.
func (p *plan) choose() {
	last := p.room - 1
	n := last // slots of timely clients
	switch {
	case p.debt > 0 && last > 1:
		n--
		p.debt--
		p.closed = true
		p.clear(&p.slots[n])
	case p.closed:
		p.closed = false
		p.turn = last - 2 // it is the next one
	}
	for range min(max(planWork/max(1, len(p.clients)), 2), n) {
		p.turn = (p.turn + 1) % n
		p.replaceFirst(&p.slots[p.turn], timely, everyone)
	}
	p.replaceFirst(&p.slots[last], unserved, timely)
}

// timely and unserved select clients, given which of the chosen baselines one has.
func timely(c *clientBaselines, _ uint64) bool { return !c.late }

func unserved(c *clientBaselines, have uint64) bool { return have == 0 && (c.late || c.waits) }

func everyone(*clientBaselines, uint64) bool { return true }

// replaceFirst replaces a choice by one for the clients of a selection, or of another one if those
// need none.
func (p *plan) replaceFirst(s *choice, first, second func(c *clientBaselines, have uint64) bool) {
	if p.replace(s, first); s.distance == 0 {
		p.replace(s, second)
	}
}

// owe makes up for keyframes that were encoded, in the next ticks.
func (p *plan) owe(keyframes int) { p.debt = min(p.debt+keyframes*keyframeWork, maxDebt) }

func (p *plan) clear(s *choice) {
	p.chosen[s.step] &^= 1 << s.distance
	*s = choice{}
}

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
