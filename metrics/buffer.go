package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/ds"
)

// bufferDescs are the metrics of a server's jitter buffers.
type bufferDescs struct {
	ticks, dry, resyncs, count, held, slack, target *prometheus.Desc
}

func (f family) buffers() bufferDescs {
	return bufferDescs{
		ticks:   f.desc("buffer_ticks_total", "Ticks of jitter buffers by result: released a frame, repeated the last one, or missing.", "rpc", "result"),
		dry:     f.desc("buffer_dry_ticks_total", "Those without a frame of their own at which nothing newer was held either.", "rpc"),
		resyncs: f.desc("buffer_resyncs_total", "How often the release times of a jitter buffer were set anew.", "rpc"),
		count:   f.desc("buffers", "Jitter buffers: players whose frames of the RPC wait for their time.", "rpc"),
		held:    f.desc("buffer_frames", "Frames that wait in all of them.", "rpc"),
		slack:   f.desc("buffer_slack_seconds", "How early frames come before their release, below 0 if they are late: the mean of the buffers.", "rpc"),
		target:  f.desc("buffer_target_seconds", "How early they should come: the mean of the buffers.", "rpc"),
	}
}

func (d *bufferDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{d.ticks, d.dry, d.resyncs, d.count, d.held, d.slack, d.target} {
		ch <- d
	}
}

// buffer sends how an RPC's buffers stand, if there were any.
func (e emitter) buffer(d *bufferDescs, rpc string, s *ds.BufferStats) {
	if s.Buffers == 0 && s.Released+s.Missing == 0 {
		return
	}
	e.counter(d.ticks, s.Released, rpc, "released")
	e.counter(d.ticks, s.Repeated, rpc, "repeated")
	e.counter(d.ticks, s.Missing-s.Repeated, rpc, "missing")
	e.counter(d.dry, s.Dry, rpc)
	e.counter(d.resyncs, s.Resyncs, rpc)
	e.gauge(d.count, float64(s.Buffers), rpc)
	e.gauge(d.held, float64(s.Held), rpc)
	e.gauge(d.slack, s.Slack.Seconds(), rpc)
	e.gauge(d.target, s.Target.Seconds(), rpc)
}

// paceDescs are the metrics of how clients follow a server's jitter buffers.
type paceDescs struct{ missing, late, slack, target, rate *prometheus.Desc }

func (f family) pace() paceDescs {
	return paceDescs{
		missing: f.desc("buffer_missing_ticks_total", "Ticks of the server's jitter buffer that had no frame, as far as it told.", "rpc"),
		late:    f.desc("buffer_late_frames_total", "Frames that came there after their tick, as far as it told.", "rpc"),
		slack:   f.desc("buffer_slack_seconds", "How early frames come to the server's jitter buffer before their release: the mean of the connections.", "rpc"),
		target:  f.desc("buffer_target_seconds", "How early they should come: the mean of the connections.", "rpc"),
		rate:    f.desc("clock_pace_ratio", "How fast the game's clock should run for that, 1 being its usual speed: the mean of the connections.", "rpc"),
	}
}

func (d *paceDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{d.missing, d.late, d.slack, d.target, d.rate} {
		ch <- d
	}
}

// paceSum adds up those of several connections that were told of a buffer.
type paceSum struct {
	conns               int
	slack, target, rate float64
}

func (s *paceSum) add(p *client.Pace) {
	if p.Target == 0 {
		return
	}
	s.conns++
	s.slack += p.Slack.Seconds()
	s.target += p.Target.Seconds()
	s.rate += p.Rate
}

func (e emitter) pace(d *paceDescs, rpc string, s *paceSum) {
	if n := float64(s.conns); n > 0 {
		e.gauge(d.slack, s.slack/n, rpc)
		e.gauge(d.target, s.target/n, rpc)
		e.gauge(d.rate, s.rate/n, rpc)
	}
}
