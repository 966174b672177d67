package way

import (
	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/lane"
)

// pace says when a message may leave: at its rate, and within its budget.
type pace struct {
	every  int
	budget int // bits a second; 0 is no limit
	credit float64
}

func newPace(o Options) pace { return pace{every: game.Rate / o.Rate, budget: o.Budget} }

// due says whether a message leaves in a tick. It is asked once a tick.
func (p *pace) due(tick int) bool {
	if p.budget > 0 {
		p.credit = min(p.credit+float64(p.budget)/game.Rate, float64(p.budget)/4)
	}
	return tick%p.every == 0 && (p.budget == 0 || p.credit >= 0)
}

// spent counts a message that left.
func (p *pace) spent(bytes int) {
	if p.budget > 0 {
		p.credit -= 8 * float64(lane.Size(bytes))
	}
}
