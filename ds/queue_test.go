package ds

import (
	"testing"

	"pgregory.net/rapid"
)

// TestQuota verifies that never more than the limit waits, and that each player has room for its
// part, whatever the others do.
func TestQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		players := rapid.IntRange(1, 20).Draw(t, "players")
		q := quota{limit: rapid.IntRange(0, 10_000).Draw(t, "limit"), players: players}
		used := make([]playerQuota, players)
		for range rapid.IntRange(1, 4).Draw(t, "polls") {
			total, each := 0, make([]int, players)
			for range rapid.IntRange(0, 200).Draw(t, "frames") {
				p, size := rapid.IntRange(0, players-1).Draw(t, "player"), rapid.IntRange(1, 500).Draw(t, "size")
				ok := q.admit(&used[p], size)
				if !ok && each[p]+size <= q.limit/2/players {
					t.Fatalf("player %d uses %d and cannot use %d more", p, each[p], size)
				}
				if ok {
					total, each[p] = total+size, each[p]+size
				}
				if total > q.limit {
					t.Fatalf("%d bytes wait", total)
				}
			}
			q.reset()
		}
	})
}
