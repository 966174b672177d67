package rpcdelta

import (
	"fmt"
	"testing"
)

// TestOutage verifies that the stream returns to deltas within a few round trips after an outage in
// either direction or both.
func TestOutage(t *testing.T) { forVariants(t, checkOutage) }

func checkOutage(t *testing.T, v variant) {
	const delay = 4
	for _, c := range []struct {
		before, frames int
		acks, up       bool // directions with total loss
	}{
		{5, 30, true, false},
		{5, 65, true, false},
		{5, 600, true, false},
		{500, 65, true, false},
		{500, 600, true, false},
		{5, 70_000, true, false},
		{500, 70_000, true, false},
		{5, 30, false, true},
		{500, 65, false, true},
		{500, 600, false, true},
		{500, 70_000, false, true},
		{5, 30, true, true},
		{500, 65, true, true},
		{500, 600, true, true},
		{500, 70_000, true, true},
		{40_000, 33_000, true, true},
		{40_000, 40_000, true, true},
		{40_000, 64_000, true, true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			if c.before+c.frames > 1<<16 && (testing.Short() || v.redundancy != 0) {
				t.Skip("long")
			}
			x := newStream(t, smallSchema(t), v.stream(streamConfig{
				Seed: uint64(c.frames), Smooth: true, Up: linkConfig{Delay: delay}, Down: linkConfig{Delay: delay},
			}))
			x.run(t, c.before)
			x.up.down, x.down.down = c.up, c.acks
			x.run(t, c.frames)
			x.up.down, x.down.down = false, false
			if c.up && c.frames > 1<<16 {
				x.lostCount()
			}
			last := x.last
			x.run(t, delay+2)
			if x.last == last {
				t.Errorf("silence: still at frame %d, after %d", x.last, x.now)
			}
			x.run(t, 10*delay)
			if n := x.deltasIn(t, 100); n < 95 {
				t.Errorf("%d deltas of 100 frames", n)
			}
		})
	}
}

// lostCount tells the checks that the decoder cannot know how often the 16-bit sequence wrapped.
func (x *stream) lostCount() { x.fresh, x.restarts = true, x.restarts+1 }

// TestAcksOfLongAgo verifies that an ack that is repeated after 65,536 frames does not acknowledge
// the frame with the same low 16 bits.
func TestAcksOfLongAgo(t *testing.T) { forVariants(t, checkAcksOfLongAgo) }

func checkAcksOfLongAgo(t *testing.T, v variant) {
	for _, before := range []int{1, 3, 100} {
		if before != 3 && (testing.Short() || v.redundancy != 0) || testing.Short() && v.codec == Adaptive {
			continue // long
		}
		x := newStream(t, smallSchema(t), v.stream(streamConfig{Seed: 1, Smooth: true}))
		x.run(t, before)
		x.up.down = true
		x.run(t, 1<<16)
		x.acknowledge(t) // the decoder's ack of the frame before the outage
		x.up.down = false
		x.lostCount()
		x.expected = append(x.expected, ErrAck)
		x.run(t, 1200)
		x.expected = nil
		if n := x.deltasIn(t, 100); n < 95 {
			t.Errorf("%d deltas of 100 frames", n)
		}
	}
}
