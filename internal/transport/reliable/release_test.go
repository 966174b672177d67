package reliable

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	kcp "github.com/xtaci/kcp-go/v5"
	"pgregory.net/rapid"

	"github.com/uplink-rpc/uplink/internal/uplinktest/check"
)

// TestRelease sends messages in both directions with pauses of any length between them, in which
// either end may release its state machine, both do, or neither. Sequence numbers pass 2^32, and
// datagrams arrive again some seconds later.
func TestRelease(t *testing.T) {
	released := [2]int{}
	rapid.Check(t, func(r *rapid.T) {
		seed := rapid.Uint64().Draw(r, "seed")
		roundTrip := time.Duration(rapid.SampledFrom([]int{2, 40, 300}).Draw(r, "round trip")) * time.Millisecond
		loss := rapid.SampledFrom([]float64{0, 0, 0.1, 0.3}).Draw(r, "loss")
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t, seed, roundTrip, loss)
			const wrap = math.MaxUint32 - 40
			l.ends[0].numbers = numbers{sentBase: wrap, receivedBase: 7}
			l.ends[1].numbers = numbers{sentBase: 7, receivedBase: wrap}
			l.record = true
			var sent, got [2]int
			step := func() {
				before := [2]bool{l.ends[0].kcp != nil, l.ends[1].kcp != nil}
				for i, received := range l.step() {
					for _, b := range received {
						if !bytes.Equal(b, message(got[i])) {
							t.Fatalf("seed %d: end %d received message %d, and it differs", seed, i, got[i])
						}
						got[i]++
					}
					if before[i] && l.ends[i].kcp == nil {
						released[i]++
					}
				}
			}
			for range 12 {
				for i := range l.ends {
					for range l.rng.IntN(12) {
						if l.send(i, message(sent[1-i])) {
							sent[1-i]++
						}
					}
					old := slices.DeleteFunc(l.old[i], func(f inFlight) bool { return time.Since(f.at) > releaseAfter+time.Second })
					if l.old[i] = old; len(old) > 0 {
						l.flying[i] = append(l.flying[i], inFlight{time.Now(), bytes.Clone(old[l.rng.IntN(len(old))].body)})
					}
				}
				for range l.rng.IntN(int(2 * releaseAfter / time.Millisecond)) {
					step()
				}
			}
			idle := func(i int) bool { _, ok := l.ends[i].Next(); return !ok && got[i] == sent[i] }
			for end := time.Now(); time.Since(end) < 10*time.Minute && (!idle(0) || !idle(1)); {
				step()
			}
			for i := range l.ends {
				if !idle(i) || l.ends[i].kcp != nil || l.ends[i].outstanding != nil {
					t.Errorf("seed %d: end %d received %d of %d messages, and has a state machine: %v", seed, i, got[i], sent[i], l.ends[i].kcp != nil)
				}
			}
		})
	})
	t.Logf("%v releases", released)
	if min(released[0], released[1]) == 0 {
		t.Error("no state machine was released while messages followed")
	}
}

// TestNoReleaseOfUndelivered: while a segment waits for an earlier one or for the rest of its
// message, the channel keeps it.
func TestNoReleaseOfUndelivered(t *testing.T) {
	type part struct {
		number uint32
		data   string
	}
	for name, parts := range map[string][2]part{
		"an earlier one": {{1, "\x00x"}, {0, "\x00x"}},
		"the rest":       {{0, "\x01x"}, {1, "x"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newChannel(func([]byte) {})
			var received int
			for _, p := range parts {
				check.Must(t, c.Input(time.Now(), segment(testConv, kcp.IKCP_CMD_PUSH, 0, p.number, []byte(p.data))))
				for {
					b, ok, err := c.Receive(time.Now(), nil)
					check.Must(t, err)
					if !ok {
						break
					}
					received += len(b)
				}
				for at, ok := c.Next(); ok; at, ok = c.Next() {
					time.Sleep(time.Until(at))
					c.Advance(time.Now())
				}
			}
			if received != 2 || c.kcp != nil {
				t.Errorf("%s: %d bytes of 2 were delivered; released: %v", name, received, c.kcp == nil)
			}
		})
	}
}

// TestReleaseKeepsRoundTrip: after a pause, a single message on a long path is sent once.
func TestReleaseKeepsRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, 1, 500*time.Millisecond, 0)
		l.transfer(16<<10, 1<<10)
		for range 10 {
			for range 6000 {
				l.step()
			}
			if l.ends[0].kcp != nil {
				t.Fatal("the channel is idle and was not released")
			}
			l.meters[0].most = 0
			check.Must(t, l.ends[0].Send(time.Now(), []byte("x")))
			for range 2000 {
				l.step()
			}
			if n := l.meters[0].most; n != 1 {
				t.Fatalf("the message was sent %d times", n)
			}
		}
	})
}
