package bots

import (
	"fmt"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
)

// Progress is how a run goes on.
type Progress struct {
	Elapsed          time.Duration
	Connected, Asked int
	Failed           int
	// Reconnections and Rebinds are of all the time since the first observation.
	Reconnections, Rebinds uint64
	PerSecond              float64       // frames sent in the last second
	Delivered, Missed      uint64        // in the last second
	Cores                  float64       // in the last second
	RoundTrip              meter.Summary // in the last second
	Lateness               meter.Summary // in the last second
}

func (r *run) progress(first, before, now observation) Progress {
	d, seconds := between(before, now), now.at.Sub(before.at).Seconds()
	r.mu.Lock()
	failed := r.failed
	r.mu.Unlock()
	return Progress{
		Reconnections: now.reconnections - first.reconnections, Rebinds: now.rebinds - first.rebinds,
		Elapsed: now.at.Sub(first.at), Connected: now.connected, Asked: r.options.Players, Failed: failed,
		PerSecond: float64(d.sent.Frames()) / seconds, Delivered: d.fates.Delivered, Missed: d.fates.Missed,
		Cores: d.cpu.Seconds() / seconds, RoundTrip: now.trips.Summary(), Lateness: now.late.Summary(),
	}
}

// String gives the progress in one line, short enough for a terminal.
func (p Progress) String() string {
	players := fmt.Sprintf("%d/%d players", p.Connected, p.Asked)
	if p.Failed > 0 {
		players += fmt.Sprintf(", %d failed", p.Failed)
	}
	return fmt.Sprintf("%.0f s: %s, %.0f/s, %s came, rtt %v, late %v ms, cpu %.2f",
		p.Elapsed.Seconds(), players, p.PerSecond, share(p.Delivered, p.Missed),
		meter.Ms(p.RoundTrip.P99), meter.Ms(p.Lateness.P99), p.Cores)
}
