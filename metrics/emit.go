package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/transport"
)

// emitter sends the values of one scrape.
type emitter chan<- prometheus.Metric

func (e emitter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func channel(reliable bool) string {
	if reliable {
		return "reliable"
	}
	return "unreliable"
}

// headers is the bytes of headers around a payload of a channel, down to IP.
func headers(reliable bool) uint64 {
	if reliable {
		return transport.HeaderSize + transport.SegmentSize + transport.IPSize
	}
	return transport.HeaderSize + transport.IPSize
}

// payloads are those of an RPC, with their bytes in all.
type payloads struct {
	messages, bytes     uint64
	shared, sharedBytes uint64 // those in a datagram after another, and what that took
	sealBytes           uint64 // of their datagrams' seals
}

// wire is what they took down to IP.
func (p *payloads) wire(reliable bool) uint64 {
	return p.bytes + p.sharedBytes + p.sealBytes + (p.messages-p.shared)*headers(reliable)
}

// rpc sends what both sides count of an RPC; fallbacks are its bindings without
// the prior.
func (e emitter) rpc(d *rpcDescs, name string, reliable bool, s *rpcdelta.Stats, p payloads, fallbacks uint64) {
	ch := channel(reliable)
	e.counter(d.older, s.Redundant, name, ch)
	e.counter(d.payloads, p.messages, name, ch)
	e.counter(d.shared, p.shared, name, ch)
	e.counter(d.frames, s.Delta, name, ch, rpcdelta.Delta.String())
	e.counter(d.frames, s.Keyframe, name, ch, rpcdelta.Keyframe.String())
	e.counter(d.frames, s.Reset, name, ch, rpcdelta.Reset.String())
	e.counter(d.bytes, (s.FullBits+7)/8, name, ch, "full")
	e.counter(d.bytes, (s.PayloadBits+7)/8, name, ch, "payload")
	e.counter(d.bytes, p.sealBytes, name, ch, "aead")
	e.counter(d.bytes, p.wire(reliable), name, ch, "wire")
	e.counter(d.fallbacks, fallbacks, name, ch)
	buckets := make(map[float64]uint64, len(inspect.AgeBounds))
	n := uint64(0)
	for i, bound := range inspect.AgeBounds {
		n += s.BaselineAge[i]
		buckets[float64(bound)] = n
	}
	e <- prometheus.MustNewConstHistogram(d.age, s.Delta, float64(s.AgeSum), buckets, name, ch)
}

// link sends what both sides count of datagrams.
func (e emitter) link(d *linkDescs, sent, sentBytes, received, receivedBytes, failed uint64, trips *transport.RTTHistogram) {
	e.counter(d.datagrams, sent, "sent")
	e.counter(d.datagrams, received, "received")
	e.counter(d.bytes, sentBytes, "sent")
	e.counter(d.bytes, receivedBytes, "received")
	e.counter(d.failed, failed)
	buckets := make(map[float64]uint64, len(trips.Counts))
	n := uint64(0)
	for bound, count := range trips.Buckets() {
		n += count
		if bound != math.MaxInt64 {
			buckets[bound.Seconds()] = n
		}
	}
	e <- prometheus.MustNewConstHistogram(d.roundTrip, n, trips.Sum.Seconds(), buckets)
}

// reasons adds up drops of one RPC and channel, or of none, so that each reason
// is sent once.
type reasons struct {
	names  []string
	counts map[string]uint64
}

func (r *reasons) add(name string, n uint64) {
	if r.counts == nil {
		r.counts = map[string]uint64{}
	}
	if _, ok := r.counts[name]; !ok {
		r.names = append(r.names, name)
	}
	r.counts[name] += n
}

func (e emitter) drops(d *prometheus.Desc, r *reasons, rpc, channel string) {
	for _, name := range r.names {
		e.counter(d, r.counts[name], rpc, channel, name)
	}
}
