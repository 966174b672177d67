package replication

import (
	"testing"
	"time"
)

// TestBroadcastSpread checks when the messages of a broadcast leave: each in its millisecond, those
// left by the next broadcast before it, and none to a player whose stream has stopped.
func TestBroadcastSpread(t *testing.T) {
	const players, spread = 10, 5 * time.Millisecond
	for _, codec := range codecs {
		r := newRecording(t, codec, recorded(t, small, 20), true, players)
		left := func() (n int) {
			for _, p := range r.players {
				n += int(p.stream.Stats().Messages)
			}
			return n
		}
		broadcast := func() {
			t.Helper()
			r.next()
			if n, err := r.world.Broadcast(r.clock, spread); n != players || err != nil {
				t.Fatalf("%s: %d messages, %v", codec, n, err)
			}
		}
		broadcast()
		for ms := range time.Duration(5) {
			if n := left(); n != 2*int(ms+1) {
				t.Errorf("%s: %d messages have left after %d ms", codec, n, ms)
			}
			next, waits := r.world.Release(r.now.Add(ms * time.Millisecond))
			if waits != (ms < 4) || waits && next != r.now.Add((ms+1)*time.Millisecond) {
				t.Errorf("%s: the next leaves after %v, %v", codec, next.Sub(r.now), waits)
			}
			r.world.Release(next)
		}
		broadcast()
		broadcast()
		if n := left(); n != 2*players+2 {
			t.Errorf("%s: %d messages have left when the third tick begins, want %d", codec, n, 2*players+2)
		}
		r.players[players-1].stream.Stop()
		r.players[players-2].stream.pause()
		r.world.Release(r.now.Add(spread))
		if n := left(); n != 3*players-2 {
			t.Errorf("%s: %d messages have left, want %d", codec, n, 3*players-2)
		}
	}
}
