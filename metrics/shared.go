package metrics

import (
	"iter"
	"math"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// shared holds the metrics that both endpoints have.
type shared struct {
	catalog
	frames, messages string // verbs for frames and messages: "sent", "delivered" or "received"
}

func newShared(prefix, frames, messages string) shared {
	s := shared{catalog{prefix, map[string]*prometheus.Desc{}}, frames, messages}
	s.define(rpcMetrics(&rpcStats{}, frames), "rpc", "channel")
	s.define(worldMetrics(&worldStats{}, messages), "world")
	s.define(linkMetrics(&linkStats{}))
	s.define(drops{"": 0}.series(), "rpc", "channel")
	s.define(buildInfo(), "version")
	return s
}

// drops counts the drops of one RPC, of one world, or of neither, by reason.
type drops map[string]uint64

func (d drops) series() (all []metric) {
	for reason, n := range d {
		all = append(all, labeled("dropped_total", "reason", reason, "Datagrams, messages, payloads and frames that were dropped, by reason. "+
			"rpc and channel are empty for drops outside of RPCs and worlds.", n))
	}
	return all
}

func (s *shared) collectRPC(ch chan<- prometheus.Metric, rpc string, st *rpcStats, d drops) {
	s.collect(ch, rpcMetrics(st, s.frames), rpc, channel(st.Reliable))
	s.collect(ch, d.series(), rpc, channel(st.Reliable))
}

func (s *shared) collectWorld(ch chan<- prometheus.Metric, world string, st worldStats, d drops) {
	s.collect(ch, worldMetrics(&st, s.messages), world)
	s.collect(ch, d.series(), world, "replication")
}

// collectLink collects the metrics that belong to no RPC and no world. d and more are the drops.
func (s *shared) collectLink(ch chan<- prometheus.Metric, st linkStats, d drops, more iter.Seq2[string, uint64]) {
	for reason, n := range more {
		d[reason] += n
	}
	s.collect(ch, d.series(), "", "")
	s.collect(ch, linkMetrics(&st))
	s.collect(ch, buildInfo(), version(debug.ReadBuildInfo()))
}

func buildInfo() []metric {
	const help = "Always 1. The labels are the versions of uplink and of the Go compiler."
	return []metric{labeled("build_info", "go_version", runtime.Version(), help, 1)}
}

func channel(reliable bool) string {
	if reliable {
		return "reliable"
	}
	return "unreliable"
}

// rpcStats are the statistics of an RPC that both endpoints have.
type rpcStats struct {
	rpcdelta.Stats
	endpoint.Payloads
	fullWireBytes uint64
}

func rpcMetrics(s *rpcStats, sent string) []metric {
	return []metric{
		labeled("frames_total", "kind", "delta", "Frames "+sent+", by kind: delta (with a baseline), keyframe (without one) or reset.",
			s.Delta),
		labeled("frames_total", "kind", "keyframe", "", s.Keyframe),
		labeled("frames_total", "kind", "reset", "", s.Reset),
		row("redundant_frames_total", "Redundant frames in the payloads "+sent+".", s.Redundant),
		row("payloads_total", "Payloads "+sent+". A payload contains one or more new frames.", s.Messages),
		row("coalesced_payloads_total", "Payloads "+sent+" in a datagram after another payload.", s.Coalesced),
		labeled("frame_bytes_total", "stage", "full", "Bytes of the frames "+sent+", by stage: full (bit-packed without a codec), "+
			"header (of payloads), payload (encoded), aead (AEAD overhead of their datagrams).",
			(s.FullBits+7)/8),
		labeled("frame_bytes_total", "stage", "header", "", (s.HeaderBits+7)/8),
		labeled("frame_bytes_total", "stage", "payload", "", (s.PayloadBits+7)/8),
		labeled("frame_bytes_total", "stage", "aead", "", s.AEADBytes),
		row("wire_bytes_total", "Bytes of the datagrams with frames "+sent+", including AEAD overhead and all headers down to IP; "+
			"an estimate without retransmissions for the reliable channel. "+
			"The wire ratio divides these and ack_wire_bytes_total by full_wire_bytes_total (docs/operations.md).",
			s.WireBytes()),
		row("full_wire_bytes_total", "Bytes of all frames sent if each were bit-packed, in an encrypted datagram of its own, including all headers down to IP.",
			s.fullWireBytes),
		{name: "baseline_age_frames", help: "Age of the baseline of each delta, in frames.", histogram: baselineAges(s)},
		row("prior_fallbacks_total", "Bindings that use the built-in prior because the server does not have the client's prior.",
			s.PriorFallbacks),
	}
}

func baselineAges(s *rpcStats) *histogram {
	h := &histogram{buckets: map[float64]uint64{}, count: s.Delta, sum: float64(s.AgeSum)}
	n := uint64(0)
	for i, bound := range rpcdelta.AgeBounds {
		n += s.BaselineAge[i]
		h.buckets[float64(bound)] = n
	}
	return h
}

// linkStats are the statistics of datagrams that both endpoints have.
type linkStats struct {
	sent, sentBytes, received, receivedBytes, failed uint64
	rtts                                             transport.RTTHistogram
}

func linkMetrics(s *linkStats) []metric {
	return []metric{
		labeled("datagrams_total", "direction", "sent", "UDP datagrams, by direction: sent or received.", s.sent),
		labeled("datagrams_total", "direction", "received", "", s.received),
		labeled("datagram_bytes_total", "direction", "sent", "Bytes of UDP payloads, by direction: sent or received.",
			s.sentBytes),
		labeled("datagram_bytes_total", "direction", "received", "", s.receivedBytes),
		row("send_failed_total", "Datagrams that the operating system refused to send.", s.failed),
		{name: "rtt_seconds", help: "Round-trip times of all connections, measured about once a second for each.", histogram: rtts(s)},
	}
}

func rtts(s *linkStats) *histogram {
	h := &histogram{buckets: map[float64]uint64{}, sum: s.rtts.Sum.Seconds()}
	for bound, n := range s.rtts.Buckets() {
		h.count += n
		if bound != math.MaxInt64 {
			h.buckets[bound.Seconds()] = h.count
		}
	}
	return h
}

// worldStats are the statistics of a world's replication streams that both endpoints have.
type worldStats struct {
	messages, updates, datagrams, bytes, initialBytes, ackBytes uint64
}

func worldMetrics(s *worldStats, sent string) []metric {
	return []metric{
		row("world_messages_total", "Messages of a world "+sent+": snapshots or state packets.", s.messages),
		row("world_updates_total", "Updates in the state packets of a world "+sent+".", s.updates),
		row("world_datagrams_total", "Datagrams "+sent+" with messages of a world or fragments of them.", s.datagrams),
		row("world_bytes_total", "Bytes of a world's messages "+sent+", without headers of datagrams.", s.bytes),
		row("world_initial_bytes_total", "Bytes of a world's initial states "+sent+", over the reliable channel.",
			s.initialBytes),
		row("world_ack_bytes_total", "Bytes of the acks of a world's messages, without headers.", s.ackBytes),
	}
}

const module = "github.com/uplink-rpc/uplink"

// version returns the version of this module in a program, or "unknown".
func version(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}

// NewFileLosses returns the collector of uplink_ds_file_lost_total for one output file of a server.
// file is the value of its label, such as "record" or "capture". lost returns the number of rows or
// records that may be missing from the file so far; it must be safe for concurrent use. Register a
// collector for each file.
func NewFileLosses(file string, lost func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "uplink_ds_file_lost_total",
		Help:        "Rows or records missing from an output file, because it could not be written or the disk was too slow.",
		ConstLabels: prometheus.Labels{"file": file},
	}, func() float64 { return float64(lost()) })
}
