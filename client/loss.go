package client

// lossDecay is the factor by which the weight of a datagram in the measured loss decreases per
// window of one second.
const lossDecay = 0.9

// recentLoss measures the packet loss of the last seconds of a link.
type recentLoss struct {
	totalLost, totalArrived uint64  // totals at the end of the last window
	lost, arrived           float64 // decaying sums
}

// step ends a window, with the totals of the link, and returns the loss.
func (r *recentLoss) step(lost, arrived uint64) float64 {
	r.lost = lossDecay*r.lost + float64(lost-min(lost, r.totalLost))
	r.arrived = lossDecay*r.arrived + float64(arrived-min(arrived, r.totalArrived))
	r.totalLost, r.totalArrived = lost, arrived
	if r.lost == 0 {
		return 0
	}
	return r.lost / (r.lost + r.arrived)
}
