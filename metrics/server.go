package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/ds"
)

// Server collects what a dedicated server counts, as uplink_ds_*. Register it
// with a registry of your own; it is safe for concurrent use.
type Server struct {
	srv   *ds.Server
	rpcs  rpcDescs
	links linkDescs
	downs serverDowns

	missed, late, players, most           *prometheus.Desc
	moves, handedOver, panics, failed     *prometheus.Desc
	acks, ackBytes, ackSealBytes, ackWire *prometheus.Desc
	buffers                               bufferDescs
	build                                 buildDesc

	kernel atomic.Uint64 // what it has dropped, as of the last scrape
}

var _ prometheus.Collector = (*Server)(nil)

// NewServer makes the collector of a server.
func NewServer(srv *ds.Server) *Server {
	f := family{"uplink_ds_"}
	return &Server{
		srv:          srv,
		rpcs:         f.rpcs("delivered"),
		links:        f.links(),
		downs:        f.serverDowns(),
		missed:       f.desc("missed_frames_total", "Frames that had not come when later ones did; of these late_frames_total came after all.", "rpc", "channel"),
		late:         f.desc("late_frames_total", "Frames delivered though newer ones came first.", "rpc", "channel"),
		acks:         f.desc("acks_total", "Ack messages sent, each in a datagram of its own."),
		ackBytes:     f.desc("ack_bytes_total", "Bytes of the ack messages sent, without headers."),
		ackSealBytes: f.desc("ack_aead_bytes_total", "Bytes of the seals of these datagrams."),
		ackWire:      f.desc("ack_wire_bytes_total", "Bytes of these datagrams, seals and all headers down to IP included."),
		players:      f.desc("players", "Players connected now."),
		most:         f.desc("max_players", "Players that are let in at most."),
		handedOver:   f.desc("forwarded_datagrams_total", "Datagrams that came to another shard than their player's and were handed over."),
		panics:       f.desc("panics_total", "Panics of the game's handlers and other callbacks. Each ends the session of one player."),
		failed:       f.desc("failed_sessions_total", "Sessions that ended because of what the client did on the reliable channel, by cause.", "cause"),
		buffers:      f.buffers(),
		build:        f.build(),
		moves:        f.desc("path_migrations_total", "Changes of players' addresses, each after the new one has answered a challenge."),
	}
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	s.rpcs.describe(ch)
	s.links.describe(ch)
	s.downs.describe(ch)
	for _, d := range []*prometheus.Desc{s.missed, s.late, s.acks, s.ackBytes, s.ackSealBytes, s.ackWire, s.players, s.most, s.moves, s.handedOver, s.panics, s.failed} {
		ch <- d
	}
	s.buffers.describe(ch)
	s.build.describe(ch)
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	e, st := emitter(ch), s.srv.Stats()
	for i := range st.RPCs {
		r := &st.RPCs[i]
		e.rpc(&s.rpcs, r.RPC, r.Reliable, &r.Stats, payloads{r.Messages, r.Bytes, r.Coalesced, r.CoalescedBytes, r.AEADBytes}, r.PriorFallbacks)
		e.counter(s.missed, r.Missed+r.LateFrames, r.RPC, channel(r.Reliable))
		e.counter(s.late, r.LateFrames, r.RPC, channel(r.Reliable))
		e.buffer(&s.buffers, r.RPC, &r.Buffer)
		var drops reasons
		addDrops(&drops, r.Drops[:])
		e.drops(s.links.drops, &drops, r.RPC, channel(r.Reliable))
	}
	for i := range st.Replication {
		e.serverDown(&s.downs, &st.Replication[i], s.links.drops)
	}
	t := &st.Transport
	var drops reasons
	addDrops(&drops, st.Drops[:])
	for reason, n := range t.Dropped.All() {
		drops.add(reason, n)
	}
	if n, ok := s.kernelDrops(); ok {
		drops.add("kernel", n)
	}
	e.drops(s.links.drops, &drops, "", "")
	e.link(&s.links, t.DatagramsSent, t.BytesSent, t.DatagramsReceived, t.BytesReceived, t.SendFailed, &t.RTTs)
	e.counter(s.acks, st.Acks.Messages)
	e.counter(s.ackBytes, st.Acks.Bytes)
	e.counter(s.ackSealBytes, st.Acks.AEADBytes)
	e.counter(s.ackWire, st.Acks.Bytes+st.Acks.AEADBytes+st.Acks.Messages*headers(false))
	e.gauge(s.players, float64(t.Open))
	e.gauge(s.most, float64(t.MaxConns))
	e.counter(s.moves, t.PathMigrations)
	e.counter(s.handedOver, t.Forwarded)
	e.counter(s.panics, st.Panics)
	e.counter(s.failed, t.ProtocolErrors, "protocol")
	e.counter(s.failed, t.Unacknowledged, "unacknowledged")
	e.build(&s.build)
}

// kernelDrops gives what the kernel has dropped, where it tells. It never decreases: when a socket is closed, the
// kernel forgets what it counted for it.
func (s *Server) kernelDrops() (most uint64, ok bool) {
	n, ok := s.srv.KernelDrops()
	for most = s.kernel.Load(); n > most; most = s.kernel.Load() {
		if s.kernel.CompareAndSwap(most, n) {
			return n, ok
		}
	}
	return most, ok
}

func addDrops(r *reasons, counts []uint64) {
	for d, n := range counts {
		r.add(ds.Drop(d).String(), n)
	}
}
