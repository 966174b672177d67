package replication

import (
	"math/bits"

	"github.com/uplink-rpc/uplink/snapshot"
)

// maxEncodings is the maximum number of encodings of a tick.
const maxEncodings = 8

// maxBare is how many of them may be bare.
const maxBare = 1

// plan is the baselines against which a tick is encoded: at most maxEncodings, whatever the clients
// have. Clients that have other ones share an older one.
type plan struct {
	newest [snapshot.Ring]int // clients by the distance of their newest baseline with references
	bare   [snapshot.Ring]int // clients without one, by the distances of all bare ones
	full   uint64             // distances of the plan, with references
	bares  uint64             // and bare
}

func (p *plan) reset() { *p = plan{} }

// add adds a client with these baselines.
func (p *plan) add(full, bare uint64) {
	if full != 0 {
		p.newest[bits.TrailingZeros64(full)]++
		return
	}
	for ; bare != 0; bare &= bare - 1 {
		p.bare[bits.TrailingZeros64(bare)]++
	}
}

// choose chooses the baselines: those whose clients would have the youngest ones in the mean. The
// size of a snapshot grows about linearly with the age of its baseline.
func (p *plan) choose() {
	p.full, p.bares = 0, 0
	room := maxEncodings
	most := 0
	for d, n := range p.bare {
		if n > most {
			most, p.bares = n, 1<<d
		}
	}
	if p.bares != 0 {
		room -= maxBare
	}
	p.chooseFull(room)
}

// chooseFull chooses up to room distances. Each client gets the next greater one. It is dynamic
// programming over the distances that clients have.
func (p *plan) chooseFull(room int) {
	var at [snapshot.Ring]int // the distances, ascending
	k := 0
	for d, n := range p.newest {
		if n > 0 {
			at[k] = d
			k++
		}
	}
	if k <= room {
		for _, d := range at[:k] {
			p.full |= 1 << d
		}
		return
	}
	const never = 1 << 60
	var cost [maxEncodings + 1][snapshot.Ring + 1]int // of the first i distances with r chosen
	var from [maxEncodings + 1][snapshot.Ring + 1]int
	for i := 1; i <= k; i++ {
		cost[0][i] = never
	}
	for r := 1; r <= room; r++ {
		for i := 1; i <= k; i++ {
			cost[r][i] = never
			moved := 0 // ages added by giving the distances from j on the last one
			for j := i; j >= 1; j-- {
				moved += p.newest[at[j-1]] * (at[i-1] - at[j-1])
				if c := cost[r-1][j-1] + moved; c < cost[r][i] {
					cost[r][i], from[r][i] = c, j-1
				}
			}
		}
	}
	for r, i := room, k; i > 0; r, i = r-1, from[r][i] {
		p.full |= 1 << at[i-1]
	}
}

// baseline returns the newest baseline of the plan that a client has.
func (p *plan) baseline(full, bare uint64) (b snapshot.Baseline, ok bool) {
	switch {
	case full&p.full != 0:
		return snapshot.Baseline{Distance: bits.TrailingZeros64(full & p.full)}, true
	case bare&p.bares != 0:
		return snapshot.Baseline{Distance: bits.TrailingZeros64(bare & p.bares), Bare: true}, true
	}
	return snapshot.Baseline{}, false
}
