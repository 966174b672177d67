package replication

import (
	"math"
	"math/bits"

	"github.com/uplink-rpc/uplink/snapshot"
)

const (
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
	turn    int                  // the next slot to replace
	clients []clientBaselines
	gains   [maxStep + 1][snapshot.Ring]int // scratch of replace
}

// maxStep is the maximum of snapshot.Baseline.Step.
const maxStep = 4

// choice is a step and a distance; distance 0 means none.
type choice struct{ step, distance int }

// clientBaselines is the distances of the baselines that a client has.
type clientBaselines struct {
	step int
	have uint64
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

// add adds a client with these baselines, with references at a step and bare.
func (p *plan) add(step int, full, bare uint64) {
	switch {
	case full != 0:
		p.clients = append(p.clients, clientBaselines{step, full})
	case bare != 0:
		p.clients = append(p.clients, clientBaselines{0, bare})
	}
}

// choose replaces some of the chosen baselines, each by the one for which the sum of the costs of
// all clients is least.
func (p *plan) choose() {
	for range min(max(planWork/max(1, len(p.clients)), 2), p.room) {
		p.turn = (p.turn + 1) % p.room
		p.replace(&p.slots[p.turn])
	}
}

func (p *plan) replace(s *choice) {
	p.chosen[s.step] &^= 1 << s.distance
	p.gains = [maxStep + 1][snapshot.Ring]int{}
	for _, c := range p.clients {
		have := c.have & p.chosen[c.step]
		cost, gains := costs[bits.TrailingZeros64(have)], &p.gains[c.step]
		for newer := c.have & (have&-have - 1); newer != 0; newer &= newer - 1 {
			d := bits.TrailingZeros64(newer)
			gains[d] += cost - costs[d]
		}
	}
	*s = choice{}
	for step := range p.gains {
		for d, gain := range p.gains[step] {
			if gain > p.gains[s.step][s.distance] {
				*s = choice{step, d}
			}
		}
	}
	if s.distance > 0 {
		p.chosen[s.step] |= 1 << s.distance
	}
}

// baseline returns the newest baseline of the plan that a client has.
func (p *plan) baseline(step int, full, bare uint64) (b snapshot.Baseline, ok bool) {
	switch {
	case full&p.chosen[step] != 0:
		return snapshot.Baseline{Distance: bits.TrailingZeros64(full & p.chosen[step]), Step: step}, true
	case bare&p.chosen[0] != 0:
		return snapshot.Baseline{Distance: bits.TrailingZeros64(bare & p.chosen[0])}, true
	}
	return snapshot.Baseline{}, false
}
