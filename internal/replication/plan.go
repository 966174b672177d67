package replication

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/snapshot"
)

// maxEncodings is the maximum number of encodings of a tick.
const maxEncodings = 8

// plan is the baselines against which a tick is encoded: at most maxEncodings, whatever the clients
// have. Clients that have other ones share an older one.
type plan struct {
	room    int                             // maximum number of encodings
	clients [maxStep + 1][snapshot.Ring]int // by step and the distance of their newest baseline
	chosen  [maxStep + 1]uint64             // distances, by step
	wanted  []wantedBaseline                // scratch of choose
}

// maxStep is the maximum of snapshot.Baseline.Step.
const maxStep = 4

// wantedBaseline is the newest baseline of some clients.
type wantedBaseline struct{ step, distance, clients int }

func (p *plan) reset() { *p = plan{room: p.room, wanted: p.wanted[:0]} }

// add adds a client with these baselines, with references at a step and bare. Of the bare ones,
// all count, since clients that have just joined have few in common.
func (p *plan) add(step int, full, bare uint64) {
	if full != 0 {
		p.clients[step][bits.TrailingZeros64(full)]++
		return
	}
	for ; bare != 0; bare &= bare - 1 {
		p.clients[0][bits.TrailingZeros64(bare)]++
	}
}

// choose chooses the baselines such that the sum of their ages over all clients is least: the size
// of a snapshot grows about linearly with that age.
func (p *plan) choose() {
	room, most := p.room, 0
	for distance, n := range p.clients[0] {
		if n > most {
			most, p.chosen[0] = n, 1<<distance
		}
	}
	if most > 0 {
		room--
	}
	for step := 1; step <= maxStep; step++ {
		for distance, n := range p.clients[step] {
			if n > 0 {
				p.wanted = append(p.wanted, wantedBaseline{step, distance, n})
			}
		}
	}
	for i := range p.share(room) {
		p.chosen[p.wanted[i].step] |= 1 << p.wanted[i].distance
	}
}

// share yields the indices of up to room wanted baselines that are chosen. The clients of each
// other one share the next older one of the same step. It is dynamic programming.
func (p *plan) share(room int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		k := len(p.wanted)
		if k <= room {
			for i := range k {
				yield(i)
			}
			return
		}
		const never = 1 << 60
		var cost, from [maxEncodings + 1][maxStep*snapshot.Ring + 1]int // of the first i, with r chosen
		for i := range k {
			cost[0][i+1] = never
		}
		for r := 1; r <= room; r++ {
			for i := range k {
				last, added := &p.wanted[i], 0
				cost[r][i+1] = never
				for j := i; j >= 0 && p.wanted[j].step == last.step; j-- {
					added += p.wanted[j].clients * (last.distance - p.wanted[j].distance)
					if c := cost[r-1][j] + added; c < cost[r][i+1] {
						cost[r][i+1], from[r][i+1] = c, j
					}
				}
			}
		}
		for r, i := room, k; i > 0; r, i = r-1, from[r][i] {
			yield(i - 1)
		}
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
