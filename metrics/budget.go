package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

// budgetDescs are the metrics of client.Config.Bandwidth.
type budgetDescs struct {
	limit, rate, over, redundancy, every *prometheus.Desc
}

func (f family) budget() budgetDescs {
	return budgetDescs{
		limit: f.desc("bandwidth_limit_bytes_per_second", "What the connections may send, headers down to IP included; those without a limit are left out."),
		rate:  f.desc("bandwidth_bytes_per_second", "What the connections that have a limit sent in the last second, headers down to IP included."),
		over:  f.desc("over_bandwidth_bytes_total", "Bytes sent above the limits."),
		redundancy: f.desc("max_redundancy_payloads",
			"How many older payloads may ride along at most, by the limits: the least of all connections, 7 without need."),
		every: f.desc("min_frames_per_payload",
			"How many frames of an adaptive RPC leave in one payload, by the limits: the most of all connections, 1 without need."),
	}
}

func (d *budgetDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{d.limit, d.rate, d.over, d.redundancy, d.every} {
		ch <- d
	}
}

// budgets adds up those of several connections.
type budgets struct {
	limit, rate float64 // bits a second
	over        uint64  // bits
	lowered     int     // redundancy, by so much
	more        int     // frames a payload than 1
}

func (b *budgets) add(s *client.BudgetStats) {
	b.limit += float64(s.Limit)
	b.rate += s.BitsPerSecond
	b.over += s.OverBits
	b.lowered = max(b.lowered, rpcdelta.MaxRedundancy-s.Redundancy)
	b.more = max(b.more, s.SendEvery-1)
}

func (e emitter) budget(d *budgetDescs, b *budgets) {
	e.gauge(d.limit, b.limit/8)
	e.gauge(d.rate, b.rate/8)
	e.counter(d.over, b.over/8)
	e.gauge(d.redundancy, float64(rpcdelta.MaxRedundancy-b.lowered))
	e.gauge(d.every, float64(1+b.more))
}
