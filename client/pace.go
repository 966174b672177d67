package client

import (
	"time"

	"github.com/uplink-rpc/uplink/internal/control"
	"github.com/uplink-rpc/uplink/jitter"
)

// Pace is the state of an RPC's jitter buffer on the server (ds.Config.JitterBuffer), and the rate
// at which the game should call the RPC for it. Without a jitter buffer, all fields but Rate are 0.
type Pace struct {
	// Rate is the speed of the game's clock at which calls arrive when the server needs them: 1 is
	// its usual speed, 1.01 is 1 % faster. It is within jitter.MaxPace of 1, and 1 if the server
	// reported nothing for two seconds.
	Rate float64
	// Slack is the mean time between the arrival of a call and its use, negative if calls arrive
	// late. Target is the slack at which the buffer aims.
	Slack, Target time.Duration
	// Missing counts the server's ticks without a call, Late the calls that arrived after their
	// tick, over all reconnections.
	Missing, Late uint64
}

// Interval returns the time from one call to the next at this pace, where d is the usual interval.
func (p Pace) Interval(d time.Duration) time.Duration {
	if p.Rate <= 0 {
		return d
	}
	return time.Duration(float64(d) / p.Rate)
}

// pace follows the reports about the jitter buffer of a stream.
type pace struct {
	start time.Time
	pacer jitter.Pacer
	last  control.Buffered // last report over the current link
	stats Pace
}

// report applies a report of the server.
func (p *pace) report(now time.Time, b *control.Buffered) {
	if p.start.IsZero() {
		p.start = now
	}
	p.pacer.Report(now.Sub(p.start), b.Slack, b.Target)
	p.stats.Slack, p.stats.Target = b.Slack, b.Target
	p.stats.Missing += uint64(b.Missing - p.last.Missing)
	p.stats.Late += uint64(b.Late - p.last.Late)
	p.last = *b
}

// at returns the pace at a time.
func (p *pace) at(now time.Time) Pace {
	out := p.stats
	out.Rate = p.pacer.Rate(now.Sub(p.start))
	return out
}

// relink prepares for the reports of another server session, whose counts start at 0.
func (p *pace) relink() { p.last, p.pacer = control.Buffered{}, jitter.Pacer{} }
