package bots

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSpread: whenever a bot has joined, the widest gap is not much more than if all were even.
func TestSpread(t *testing.T) {
	var at []float64
	for i := range 500 {
		at = append(at, spread(i))
		sorted := slices.Sorted(slices.Values(at))
		widest := 1 - sorted[i] + sorted[0]
		for k := range i {
			widest = max(widest, sorted[k+1]-sorted[k])
		}
		if widest*float64(i+1) > 2.2 || sorted[0] < 0 || sorted[i] >= 1 {
			t.Fatalf("%d players leave a gap of %v", i+1, widest)
		}
	}
}

// TestSkip: a call that would be a whole period late is not made, but its lateness counts.
func TestSkip(t *testing.T) {
	now := time.Now()
	p, b := newPacer(now, 10), &bot{}
	if !p.call(b, now.Add(-100*time.Millisecond), 100*time.Millisecond) || p.skipped.Load() != 1 || p.late.Summary().Count != 1 || b.row != 0 {
		t.Errorf("%d skipped", p.skipped.Load())
	}
	b.since = now
	if !p.call(b, now.Add(-time.Second), time.Second) || p.skipped.Load() != 1 || p.late.Summary().Count != 1 {
		t.Error("a call from before the bot joined counts")
	}
}

// TestAdmit: whoever joins, the ring stays in order of phases, and the next one stays the next.
func TestAdmit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		p := newPacer(now, 10)
		for range rapid.IntRange(1, 20).Draw(t, "joins") {
			var next *bot
			if len(p.ring) > 0 {
				p.at = rapid.IntRange(0, len(p.ring)-1).Draw(t, "at")
				next = p.ring[p.at]
			}
			for range rapid.IntRange(1, 3).Draw(t, "bots") {
				p.add(&bot{phase: time.Duration(rapid.IntRange(0, 9).Draw(t, "phase"))})
			}
			p.admit(now)
			if !slices.IsSortedFunc(p.ring, func(a, b *bot) int { return int(a.phase - b.phase) }) {
				t.Fatal("not in order")
			}
			if next != nil && slices.Index(p.ring, next) < p.at {
				t.Fatal("somebody lost its turn")
			}
			for _, b := range p.ring[:p.at] {
				if next == nil || b.phase > next.phase {
					t.Fatal("somebody's turn is over before it came")
				}
			}
		}
	})
}
