package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
)

// stateDescs are the metrics of how clients' links are now.
type stateDescs struct {
	rate, loss, burst, redundancy *prometheus.Desc
	pace                          paceDescs
}

func (f family) state() stateDescs {
	return stateDescs{
		pace: f.pace(),
		rate: f.desc("link_bytes_per_second",
			"What went over all connections in the last second, headers down to IP included, by direction: sent or received.", "direction"),
		loss:       f.desc("loss_ratio", "Share of an unreliable RPC's payloads that is lost lately, as acks show: the mean of the connections.", "rpc"),
		burst:      f.desc("loss_burst_payloads", "How many of its payloads are lost in a row where one is: the mean of the connections, 1 if nothing is.", "rpc"),
		redundancy: f.desc("redundancy_payloads", "How many older payloads ride along in each of its payloads, at most: the mean of the connections.", "rpc"),
	}
}

func (d *stateDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{d.rate, d.loss, d.burst, d.redundancy} {
		ch <- d
	}
	d.pace.describe(ch)
}

// states adds up those of several connections.
type states struct {
	sent, received float64 // bits a second
	order          []string
	rpcs           map[string]*rpcState
}

// rpcState is an RPC's, added up.
type rpcState struct {
	conns                   int
	loss, burst, redundancy float64
	pace                    paceSum
}

func (s *states) add(st *client.Stats) {
	s.sent += st.SentBitsPerSecond
	s.received += st.ReceivedBitsPerSecond
	for i := range st.RPCs {
		r := &st.RPCs[i]
		if r.Reliable || r.Burst == 0 { // not bound now
			continue
		}
		sum := s.rpcs[r.RPC]
		if sum == nil {
			if s.rpcs == nil {
				s.rpcs = map[string]*rpcState{}
			}
			sum = &rpcState{}
			s.rpcs[r.RPC] = sum
			s.order = append(s.order, r.RPC)
		}
		sum.conns++
		sum.loss += r.Loss
		sum.burst += r.Burst
		sum.redundancy += float64(r.Redundancy)
		sum.pace.add(&r.Pace)
	}
}

func (e emitter) state(d *stateDescs, s *states) {
	e.gauge(d.rate, s.sent/8, "sent")
	e.gauge(d.rate, s.received/8, "received")
	for _, rpc := range s.order {
		r := s.rpcs[rpc]
		n := float64(r.conns)
		e.gauge(d.loss, r.loss/n, rpc)
		e.gauge(d.burst, r.burst/n, rpc)
		e.gauge(d.redundancy, r.redundancy/n, rpc)
		e.pace(&d.pace, rpc, &r.pace)
	}
}
