package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/ds"
)

// Server collects what a dedicated server counts, as uplink_ds_*. Register it
// with a registry of your own; it is safe for concurrent use.
type Server struct {
	srv   *ds.Server
	rpcs  rpcDescs
	links linkDescs

	missed, late, players, moves          *prometheus.Desc
	acks, ackBytes, ackSealBytes, ackWire *prometheus.Desc
}

var _ prometheus.Collector = (*Server)(nil)

// NewServer makes the collector of a server.
func NewServer(srv *ds.Server) *Server {
	f := family{"uplink_ds_"}
	return &Server{
		srv:          srv,
		rpcs:         f.rpcs("delivered"),
		links:        f.links(),
		missed:       f.desc("missed_frames_total", "Frames that were never delivered, as later ones show.", "rpc", "channel"),
		late:         f.desc("late_frames_total", "Frames delivered though newer ones came first.", "rpc", "channel"),
		acks:         f.desc("acks_total", "Ack messages sent, each in a datagram of its own."),
		ackBytes:     f.desc("ack_bytes_total", "Bytes of the ack messages sent, without headers."),
		ackSealBytes: f.desc("ack_seal_bytes_total", "Bytes of the seals of these datagrams."),
		ackWire:      f.desc("ack_wire_bytes_total", "Bytes of these datagrams, seals and all headers down to IP included."),
		players:      f.desc("players", "Players connected now."),
		moves:        f.desc("moves_total", "Changes of players' addresses, each after the new one has answered a challenge."),
	}
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	s.rpcs.describe(ch)
	s.links.describe(ch)
	for _, d := range []*prometheus.Desc{s.missed, s.late, s.acks, s.ackBytes, s.ackSealBytes, s.ackWire, s.players, s.moves} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	e, st := emitter(ch), s.srv.Stats()
	for i := range st.RPCs {
		r := &st.RPCs[i]
		e.rpc(&s.rpcs, r.RPC, r.Reliable, &r.Stats, payloads{r.Messages, r.Bytes, r.Shared, r.SharedBytes, r.SealBytes}, r.PriorFallbacks)
		e.counter(s.missed, r.Missed, r.RPC, channel(r.Reliable))
		e.counter(s.late, r.LateFrames, r.RPC, channel(r.Reliable))
		var drops reasons
		addDrops(&drops, r.Drops[:])
		e.drops(s.links.drops, &drops, r.RPC, channel(r.Reliable))
	}
	t := &st.Transport
	var drops reasons
	addDrops(&drops, st.Drops[:])
	t.Dropped.Each(drops.add)
	e.drops(s.links.drops, &drops, "", "")
	e.link(&s.links, t.DatagramsSent, t.BytesSent, t.DatagramsReceived, t.BytesReceived, &t.RoundTrips)
	e.counter(s.acks, st.Acks.Messages)
	e.counter(s.ackBytes, st.Acks.Bytes)
	e.counter(s.ackSealBytes, st.Acks.SealBytes)
	e.counter(s.ackWire, st.Acks.Bytes+st.Acks.SealBytes+st.Acks.Messages*headers(false))
	e.gauge(s.players, float64(t.Open))
	e.counter(s.moves, t.Moves)
}

func addDrops(r *reasons, counts []uint64) {
	for d, n := range counts {
		r.add(ds.Drop(d).String(), n)
	}
}
