package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

// What a state of the past is kept for: payloads that come late have older
// baselines, of which there are as many as acks on the way.
const (
	maxCheckpoints     = 8
	checkpointInterval = 6 // frames between two of them, at least
)

// past keeps states as they were some baselines ago.
type checkpoints struct {
	states  [maxCheckpoints]*adaptive.State // kept[i] is the one kept n-1-i keeps ago, modulo
	n       int                             // states kept so far
	scratch *adaptive.State
}

func newCheckpoints(m *adaptive.Model, ring int) *checkpoints {
	p := &checkpoints{scratch: m.NewState(ring)}
	for i := range p.states {
		p.states[i] = m.NewState(ring)
	}
	return p
}

func (p *checkpoints) reset() { p.n = 0 }

// keep keeps s, which is about to learn up to base.
func (p *checkpoints) save(s *adaptive.State, base uint64) {
	at, ok := s.Newest()
	if !ok || base <= at {
		return
	}
	if p.n > 0 {
		if last, _ := p.states[(p.n-1)%maxCheckpoints].Newest(); at < last+checkpointInterval {
			return
		}
	}
	p.states[p.n%maxCheckpoints].CopyFrom(s)
	p.n++
}

// at gives the state up to base, or nil if that is too long ago.
func (p *checkpoints) restore(base uint64, known *adaptive.Frames) *adaptive.State {
	for i := p.n - 1; i >= max(0, p.n-maxCheckpoints); i-- {
		s := p.states[i%maxCheckpoints]
		if at, _ := s.Newest(); at > base {
			continue
		}
		if !s.CanLearn(known) {
			return nil
		}
		p.scratch.CopyFrom(s)
		if !p.scratch.Learn(base, known) {
			return nil
		}
		return p.scratch
	}
	return nil
}
