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
	s := b.join(0)
	s.call()
	if len(b.srv.due) != 1 || s.player.bound() != 1 {
		t.Fatal("the player has nothing to lose")
	}
	e := (*events)(b.srv)
	s.player.conn.Value = s.player
	b.srv.players[s.player] = struct{}{}
	e.Closed(s.player.conn, nil)
	e.Tick(time.Now())
	if left != 1 || s.player.bindings != nil || len(b.srv.due) != 0 || b.srv.due[:1][0] != nil {
		t.Errorf("left %d times, keeps %v, %v are due", left, s.player.bindings, b.srv.due[:1])
	}
}
