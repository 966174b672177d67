package rpcdelta

import "github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"

// What a state of the past is kept for: payloads that come late have older
// baselines, of which there are as many as acks on the way.
const (
	pastStates = 8
	pastEvery  = 6 // frames between two of them, at least
)

// past keeps states as they were some baselines ago.
type past struct {
	kept    [pastStates]*adaptive.State // kept[i] is the one kept n-1-i keeps ago, modulo
	n       int                         // states kept so far
	scratch *adaptive.State
}

func newPast(m *adaptive.Model, ring int) *past {
	p := &past{scratch: m.NewState(ring)}
	for i := range p.kept {
		p.kept[i] = m.NewState(ring)
	}
	return p
}

func (p *past) reset() { p.n = 0 }

// keep keeps s, which is about to learn up to base.
func (p *past) keep(s *adaptive.State, base uint64) {
	at, ok := s.Newest()
	if !ok || base <= at {
		return
	}
	if p.n > 0 {
		if last, _ := p.kept[(p.n-1)%pastStates].Newest(); at < last+pastEvery {
			return
		}
	}
	p.kept[p.n%pastStates].CopyFrom(s)
	p.n++
}

// at gives the state up to base, or nil if that is too long ago.
func (p *past) at(base uint64, known *adaptive.Frames) *adaptive.State {
	for i := p.n - 1; i >= max(0, p.n-pastStates); i-- {
		s := p.kept[i%pastStates]
		if at, _ := s.Newest(); at > base {
			continue
		}
		if !s.Follows(known) {
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
