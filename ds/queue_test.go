package ds

import (
	"slices"
	"testing"
	"unsafe"

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

// TestFairQueue verifies that what does not fit into the queue is dropped and counted, and that a
// flooding player does not crowd out another while the game does not poll.
func TestFairQueue(t *testing.T) {
	const room = 200 // frames
	got, missed := map[*Player]int{}, uint64(0)
	b := newBench(t, Config{Poll: true, Limits: Limits{QueueBytes: room * int(unsafe.Sizeof(item[testCall]{})+1)}}, func(p *Player, f Frame[testCall]) {
		got[p]++
		missed += f.Missed
	})
	flood, quiet := b.join(0), b.join(0)
	handled, sent := 0, 0
	for _, n := range []int{500, 20, 500} {
		clear(got)
		for range 2 * n {
			flood.call()
		}
		for range n {
			quiet.call()
		}
		sent += 3 * n
		handled += b.srv.Poll()
		most, least := got[flood.player], got[quiet.player]
		// Half of the room and its half of the other one; the other player has a fourth.
		if full := n > 20; !full && (most != 2*n || least != n) || full && (most < room*3/4-8 || most > room*3/4+8 || least < room/4-5 || least > room/4+5) {
			t.Errorf("%d and %d of %d frames were handled", most, least, n)
		}
	}
	st := b.stats().RPCs[0]
	if full := st.Drops[QueueFull]; int(full)+handled != sent || st.Missed != full || int(st.Frames()) != handled || missed == 0 || missed >= full {
		t.Errorf("%d frames sent, %d handled, %d missed between them: %+v", sent, handled, missed, st)
	}
}

// TestPollKeepsBytes verifies that values do not change while more frames arrive.
func TestPollKeepsBytes(t *testing.T) {
	var s *sender
	b := newBench(t, Config{Poll: true}, func(_ *Player, f Frame[testCall]) {
		var want testCall
		want.set(f.Seq)
		for range 3 {
			s.call()
		}
		if !slices.Equal(f.Value.Payload, want.Payload) {
			t.Errorf("frame %d changed while its handler ran", f.Seq)
		}
	})
	s = b.join(0)
	s.call()
	for range 6 {
		b.srv.Poll()
	}
	if n := b.stats().RPCs[0].Frames(); n != 364+729 {
		t.Errorf("%d frames came", n)
	}
}
