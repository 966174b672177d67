package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

const (
	maxCheckpoints     = 8
	checkpointInterval = 6 // minimum distance of two checkpoints, in frames
)

// checkpoints are copies of earlier learned states. Late payloads have older baselines, as many as
// there are acks in flight.
type checkpoints struct {
	states  [maxCheckpoints]*adaptive.State // ring buffer
	n       int                             // number of states saved since the last reset
	scratch *adaptive.State
}

func newCheckpoints(m *adaptive.Model, ring int) *checkpoints {
	c := &checkpoints{scratch: m.NewState(ring)}
	for i := range c.states {
		c.states[i] = m.NewState(ring)
	}
	return c
}

func (c *checkpoints) reset() { c.n = 0 }

// save saves s, which is about to learn up to base, unless the last checkpoint is recent.
func (c *checkpoints) save(s *adaptive.State, base uint64) {
	at, ok := s.Newest()
	if !ok || base <= at {
		return
	}
	if c.n > 0 {
		if last, _ := c.states[(c.n-1)%maxCheckpoints].Newest(); at < last+checkpointInterval {
			return
		}
	}
	c.states[c.n%maxCheckpoints].CopyFrom(s)
	c.n++
}

// restore returns the state at base, or nil if base is too old. The state is valid until the next
// call.
func (c *checkpoints) restore(base uint64, known *adaptive.Frames) *adaptive.State {
	for i := c.n - 1; i >= max(0, c.n-maxCheckpoints); i-- {
		s := c.states[i%maxCheckpoints]
		if at, _ := s.Newest(); at > base {
			continue
		}
		if !s.CanLearn(known) {
			return nil
		}
		c.scratch.CopyFrom(s)
		if !c.scratch.Learn(base, known) {
			return nil
		}
		return c.scratch
	}
	return nil
}
