package ds

import (
	"testing"

	"pgregory.net/rapid"
)

// TestShare: never waits more than the limit, and while nobody joins every player
// has room for its part, whatever the others do.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		players := rapid.IntRange(1, 20).Draw(t, "players")
		s := quota{limit: rapid.IntRange(0, 10_000).Draw(t, "limit"), players: players}
		held := make([]playerQuota, players)
		for range rapid.IntRange(1, 4).Draw(t, "polls") {
			total, each := 0, make([]int, players)
			for range rapid.IntRange(0, 200).Draw(t, "frames") {
				p, size := rapid.IntRange(0, players-1).Draw(t, "player"), rapid.IntRange(1, 500).Draw(t, "size")
				ok := s.admit(&held[p], size)
				if !ok && each[p]+size <= s.limit/2/players {
					t.Fatalf("player %d has %d and cannot have %d more", p, each[p], size)
				}
				if ok {
					total, each[p] = total+size, each[p]+size
				}
				if total > s.limit {
					t.Fatalf("%d wait", total)
				}
			}
			s.reset()
		}
	})
}
