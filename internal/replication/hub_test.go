package replication

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
				n += int(p.replica.Stats().Messages)
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
		r.players[players-1].replica.Stop()
		r.players[players-2].replica.pause()
		r.world.Release(r.now.Add(spread))
		if n := left(); n != 3*players-2 {
			t.Errorf("%s: %d messages have left, want %d", codec, n, 3*players-2)
		}
	}
}

// TestRelease verifies that messages that are due at the same time are sent by several goroutines
// if they are many, and flushed together.
func TestRelease(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("needs two processors")
	}
	synctest.Test(t, func(t *testing.T) {
		const players, spread = 100, 5 * time.Millisecond
		r := newRecording(t, SnapshotCodec, recorded(t, small, 5), true, players)
		var sent atomic.Int64
		for _, p := range r.players {
			p.sending = func() { sent.Add(1) }
		}
		var flushes []int64
		r.world.FlushBy(func() { flushes = append(flushes, sent.Load()) })
		r.next()
		if n, err := r.world.Broadcast(r.clock, spread); n != players || err != nil {
			t.Fatal(n, err)
		}
		var two sync.WaitGroup
		two.Add(2)
		for _, p := range r.players {
			p.sending = func() {
				if sent.Add(1)-players/5 <= 2 { // the first two wait for each other
					two.Done()
					two.Wait()
				}
			}
		}
		r.world.Release(r.now.Add(spread))
		if want := []int64{players / 5, players}; !slices.Equal(flushes, want) {
			t.Errorf("flushed after %d messages, want %d", flushes, want)
		}
	})
}
