package ds

import (
	"testing"
	"time"
)

// TestPlayerLetsGo has a player leave who still has frames to ack: the rings go
// with it, though the game keeps the player.
func TestPlayerLetsGo(t *testing.T) {
	left := 0
	b := newBench(t, Config{Left: func(*Player, error) { left++ }}, func(*Player, Frame[testCall]) {})
	h, s := b.srv.shards[0], b.join(0)
	s.call()
	if len(h.due) != 1 || s.player.bound() != 1 {
		t.Fatal("the player has nothing to lose")
	}
	s.player.conn.Value = s.player
	h.players[s.player] = struct{}{}
	h.Closed(s.player.conn, nil)
	h.Tick(time.Now())
	if left != 1 || s.player.bindings != nil || len(h.due) != 0 || h.due[:1][0] != nil {
		t.Errorf("left %d times, keeps %v, %v are due", left, s.player.bindings, h.due[:1])
	}
}
