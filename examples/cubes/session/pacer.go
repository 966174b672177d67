package session

import (
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// pacer limits messages to a rate and a budget.
type pacer struct {
	every  int
	budget int     // bits per second; 0 means no limit
	credit float64 // bits
}

func newPacer(o Options) pacer { return pacer{every: world.TickRate / o.Rate, budget: o.Budget} }

// due reports whether a message may be sent in a tick. It must be called exactly once per tick.
func (p *pacer) due(tick int) bool {
	if p.budget > 0 {
		p.credit = min(p.credit+float64(p.budget)/world.TickRate, float64(p.budget)/4)
	}
	return tick%p.every == 0 && (p.budget == 0 || p.credit >= 0)
}

// spent accounts for a message of that many bytes.
func (p *pacer) spent(bytes int) {
	if p.budget > 0 {
		p.credit -= 8 * float64(wireSize(bytes))
	}
}
