package replication

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/allocs"
)

// settle chooses until each slot was replaced several times.
func (p *plan) settle() {
	for range 8 * maxEncodings {
		p.choose()
	}
}

// cost returns the sum of the costs of all clients.
func (p *plan) cost() (sum int) {
	for _, c := range p.clients {
		sum += costs[bits.TrailingZeros64(c.of(c.step)&p.chosen[c.step])]
	}
	return sum
}

// TestPlan checks that a plan has at most as many baselines as there is room for, that no other
// baseline instead of one of them is better, and that the same clients keep it.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plan{room: rapid.IntRange(2, maxEncodings).Draw(rt, "room")}
		for range rapid.IntRange(1, 40).Draw(rt, "clients") {
			have := rapid.Uint64().Draw(rt, "have") &^ 1 << rapid.IntRange(0, 20).Draw(rt, "age")
			p.add(clientBaselines{rapid.IntRange(1, maxStep).Draw(rt, "step"), have & rapid.Uint64().Draw(rt, "full"), have, false, false})
		}
		p.settle()
		chosen, cost, n := p.chosen, p.cost(), 0
		for _, c := range chosen {
			n += bits.OnesCount64(c)
		}
		if n > p.room {
			rt.Fatalf("%d encodings, want at most %d", n, p.room)
		}
		for i := range p.room {
			s := p.slots[i]
			for step := range p.chosen {
				for d := 1; d < 64; d++ {
					p.chosen = chosen
					p.chosen[s.step] &^= 1 << s.distance
					p.chosen[step] |= 1 << d
					if p.cost() < cost {
						rt.Fatalf("step %d, distance %d instead of %+v is better", step, d, s)
					}
				}
			}
		}
		p.chosen = chosen
		if p.settle(); p.cost() != cost {
			rt.Fatalf("the cost becomes %d, after %d", p.cost(), cost)
		}
	})
}

// TestPlanReaches checks that clients with few baselines in common have one of the plan, and that
// it follows when the clients change.
func TestPlanReaches(t *testing.T) {
	p := plan{room: maxEncodings}
	for _, delay := range []int{3, 30} {
		p.reset()
		for i := range 1000 { // two distances of thirteen have no baseline
			have := uint64(1<<20-1) &^ (1 << (i % 13)) &^ (1 << (i * 7 % 13)) << (delay + i%10)
			p.add(clientBaselines{1, have, have, false, false})
		}
		p.settle()
		for i, c := range p.clients {
			b, ok := p.baseline(c)
			if newest := bits.TrailingZeros64(c.full); !ok || b.Distance < newest || b.Distance > newest+6 {
				t.Errorf("delay %d: client %d has %+v, its newest is %d", delay, i, b, newest)
			}
		}
	}
}

// TestPlanWaits checks that a single client that has waited gets a baseline, among many others.
func TestPlanWaits(t *testing.T) {
	p := plan{room: maxEncodings}
	for range 3 {
		p.reset()
		for i := range 1000 {
			p.add(clientBaselines{1, 1 << (i%30 + 1), 1 << (i%30 + 1), false, false})
		}
		joined := clientBaselines{step: 1, bare: 1 << 9, waits: true}
		p.add(joined)
		p.choose()
		if b, ok := p.baseline(joined); !ok || b.Distance != 9 || b.Step != 0 {
			t.Errorf("%+v", b)
		}
	}
}

// TestPlanOwes checks that keyframes are made up for by as much work in the next ticks, in which
// every client still has a baseline, and that a single client keeps its own.
func TestPlanOwes(t *testing.T) {
	for _, clients := range []int{1, 64, 1000} {
		p := plan{room: maxEncodings}
		for i := range clients {
			have := uint64(1<<20-1) << (2 + i%10)
			p.add(clientBaselines{1, have, have, false, false})
		}
		p.settle()
		count := func() (n int) {
			for _, c := range p.chosen {
				n += bits.OnesCount64(c)
			}
			return n
		}
		full, left := count(), 0
		p.owe(2)
		for range 3 * keyframeWork {
			p.choose()
			left += full - count()
			for i, c := range p.clients {
				if b, ok := p.baseline(c); !ok || b.Distance > 12 {
					t.Fatalf("%d clients: client %d has %+v", clients, i, b)
				}
			}
		}
		want := 2 * keyframeWork
		if clients == 1 {
			want = 0 // one baseline is enough
		}
		if left != want || count() != full {
			t.Errorf("%d clients: %d encodings less, want %d; then %d, want %d", clients, left, want, count(), full)
		}
		if p.owe(1000); p.debt > maxDebt {
			t.Errorf("%d clients: %d ticks", clients, p.debt)
		}
	}
}

// TestPlanAllocs checks that a plan for many clients allocates nothing.
func TestPlanAllocs(t *testing.T) {
	p := plan{room: maxEncodings}
	tick := func() {
		p.reset()
		for i := range 1000 {
			p.add(clientBaselines{step: 1, full: 1 << (i%40 + 1)})
		}
		p.choose()
	}
	tick()
	if n := allocs.PerRun(10, tick); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
