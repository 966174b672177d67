package metrics

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/replication"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
)

// Client collects the statistics of client connections as uplink_client_*: the sums of counters,
// and sums or means of gauges. Register it with a registry of your own. It is safe for concurrent
// use.
type Client struct {
	shared

	mu    sync.Mutex
	conns []*client.Conn
	past  client.Stats // sum of the counters of the replaced connections
}

var _ prometheus.Collector = (*Client)(nil)

// NewClient returns the collector of one or more connections.
func NewClient(conns ...*client.Conn) *Client {
	c := &Client{shared: newShared("uplink_client_", "sent", "received"), conns: slices.Clone(conns)}
	c.define(unreliableMetrics(&client.RPCStats{}), "rpc")
	c.define(clientMetrics(&clientStats{}))
	c.define(meanMetrics(&rpcMeans{}), "rpc")
	c.define(clockMetrics(&paceMeans{}), "rpc")
	c.define(clientWorldMetrics(&replication.Stats{}), "world")
	return c
}

type clientStats struct {
	client.Stats

	limit, limited float64 // sums over the connections with a bandwidth limit, in bits per second
	congested      int     // number of connections that congestion limits
	lowered        int     // largest reduction of the maximum redundancy
	batched        float64 // largest minimum of frames per payload, less 1
}

func clientMetrics(s *clientStats) []metric {
	return []metric{
		row("ack_bytes_total", "Bytes of the ack messages received, without headers.", s.Acks.Bytes),
		row("ack_wire_bytes_total", "Bytes of the datagrams of acks alone that were received, including AEAD overhead and all headers down to IP, and of piggybacked acks.",
			s.Acks.WireBytes()),
		row("calls_total", "Calls between server and client: of the client's RPCs by the server.", s.Calls),
		row("calls_dropped_total", "Payloads of such calls that came too late or could not be decoded.", s.CallsDropped),
		row("mismatches_total", "Mismatches with servers that were reported: fields and types of objects that only one end has, and worlds that were not offered.", s.Mismatches),
		row("panics_total", "Recovered panics of the game's callbacks and of decoders. Each ends one session.", s.Panics),
		labeled("stream_bytes_total", "direction", "sent", "Bytes of byte streams, by direction: sent or received.", s.StreamBytesSent),
		labeled("stream_bytes_total", "direction", "received", "", s.StreamBytesReceived),
		row("lost_datagrams_total", "Datagrams of the server that did not arrive.", s.Transport.Lost),
		row("small_paths_total", "How often a path was found not to carry datagrams of 1,200 bytes, which are sent in parts there.", s.Transport.SmallPaths),
		labeled("link_bytes_per_second", "direction", "sent", "Rate of all connections in the last second, including all headers down to IP, by direction: sent or received.",
			s.SentBitsPerSecond/8),
		labeled("link_bytes_per_second", "direction", "received", "", s.ReceivedBitsPerSecond/8),
		row("bandwidth_limit_bytes_per_second", "Sum of the bandwidth limits of the connections that have one.",
			s.limit/8),
		row("bandwidth_bytes_per_second", "Rate sent in the last second by the connections with a bandwidth limit, including all headers down to IP.",
			s.limited/8),
		row("over_bandwidth_bytes_total", "Bytes sent above the bandwidth limits.", s.Budget.OverBits/8),
		row("congested_connections", "Connections whose rate is limited because their path is congested.", s.congested),
		row("max_redundancy_payloads", fmt.Sprintf("Maximum redundancy that the bandwidth limits permit, in older payloads: the minimum of all connections, %d if no limit applies.", rpcdelta.MaxRedundancy),
			rpcdelta.MaxRedundancy-s.lowered),
		row("min_frames_per_payload", "Minimum mean number of frames per payload of adaptive RPCs for the bandwidth limits: the maximum of all connections, 1 if no limit applies.",
			1+s.batched),
	}
}

// unreliableMetrics are the counters of unreliable RPCs. The server reports the counters of jitter
// buffers.
func unreliableMetrics(r *client.RPCStats) []metric {
	p := &r.Pace
	return []metric{
		row("repeated_payloads_total", "Payloads sent again because their acks were overdue.", r.Repeated),
		row("buffer_missing_ticks_total", "Ticks of the server's jitter buffer without a frame, as reported by the server.",
			p.Missing),
		row("buffer_late_frames_total", "Frames that arrived at the server's jitter buffer after their tick, as reported by the server.",
			p.Late),
	}
}

// rpcMeans holds sums over the connections on which an unreliable RPC is bound. Dividing them by
// conns yields means.
type rpcMeans struct {
	conns                   float64
	loss, burst, redundancy float64
	pace                    paceMeans
}

func meanMetrics(m *rpcMeans) []metric {
	return []metric{
		row("loss_ratio", "Recent packet loss of an unreliable RPC's payloads, from acks: the mean of the connections.",
			m.loss/m.conns),
		row("loss_burst_payloads", "Mean length of a loss burst, in payloads: the mean of the connections, 1 without loss.",
			m.burst/m.conns),
		row("redundancy_payloads", "Maximum number of older payloads that a payload repeats: the mean of the connections.",
			m.redundancy/m.conns),
	}
}

// paceMeans holds sums over the connections whose server reports a jitter buffer. Dividing them by
// conns yields means.
type paceMeans struct{ conns, slack, target, rate float64 }

func clockMetrics(m *paceMeans) []metric {
	return []metric{
		row("buffer_slack_seconds", "Slack of frames in the server's jitter buffer, negative if they are late: the mean of the connections.",
			m.slack/m.conns),
		row("buffer_target_seconds", "Target of the slack: the mean of the connections.", m.target/m.conns),
		row("clock_pace_ratio", "Clock pacing: the speed at which the game's clock should run, 1 for its normal speed: the mean of the connections.",
			m.rate/m.conns),
	}
}

func clientWorldMetrics(r *replication.Stats) []metric {
	return []metric{
		row("world_partial_views_total", "Views of a world that were shown after a reconnection or a handover before all of their objects had arrived.",
			r.Partial),
	}
}

// Replace replaces the connection old, which is closed, by next. The counts of old remain in the
// sums, so that no counter decreases, but the connection is released.
func (c *Client) Replace(old, next *client.Conn) {
	st := old.Stats()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.conns, old)
	if i < 0 {
		return
	}
	c.conns[i] = next
	addCounters(&c.past, &st)
}

// Collect implements [prometheus.Collector].
func (c *Client) Collect(ch chan<- prometheus.Metric) {
	sums, means := c.sums()
	for i := range sums.RPCs {
		r := &sums.RPCs[i]
		c.collectRPC(ch, r.RPC, &rpcStats{Stats: r.Stats, Payloads: r.Payloads, fullWireBytes: r.FullWireBytes()}, drops{
			"out_of_range": r.OutOfRange, "too_large": r.TooLarge, "unencodable": r.Unencodable, "reconnecting": r.Reconnecting,
		})
		if !r.Reliable {
			c.collect(ch, unreliableMetrics(r), r.RPC)
		}
	}
	for i := range sums.Replication {
		r := &sums.Replication[i]
		c.collectWorld(ch, r.Name, worldStats{r.Messages, r.Updates, r.Datagrams, r.Bytes, r.InitialBytes, r.AckBytes}, drops{
			"late": r.Late, "baseline_missing": r.BaselineMissing, "desync": r.Desync, "incomplete": r.Incomplete,
			"unpolled": r.Unpolled, "invalid_fragment": r.BadFragments, "truncated": r.Truncated, "invalid_count": r.BadCounts,
			"invalid_id": r.BadIDs, "invalid_value": r.BadValues, "malformed": r.Malformed,
		})
		c.collect(ch, clientWorldMetrics(r), r.Name)
	}
	c.collect(ch, clientMetrics(&sums))
	for rpc, m := range means {
		c.collect(ch, meanMetrics(m), rpc)
		if m.pace.conns > 0 {
			c.collect(ch, clockMetrics(&m.pace), rpc)
		}
	}
	t := &sums.Transport
	c.collectLink(ch, linkStats{t.DatagramsSent, t.BytesSent, t.DatagramsReceived, t.BytesReceived, t.SendFailed, t.RTTs},
		drops{"malformed": sums.Malformed}, t.Dropped.All())
}

// sums adds up the statistics of all connections. means contains the bound unreliable RPCs, by
// name.
func (c *Client) sums() (sums clientStats, means map[string]*rpcMeans) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addCounters(&sums.Stats, &c.past)
	means = map[string]*rpcMeans{}
	for _, conn := range c.conns {
		st := conn.Stats()
		addCounters(&sums.Stats, &st)
		sums.SentBitsPerSecond += st.SentBitsPerSecond
		sums.ReceivedBitsPerSecond += st.ReceivedBitsPerSecond
		sums.limit += float64(st.Budget.Limit)
		sums.limited += st.Budget.BitsPerSecond
		if st.Budget.Path != 0 {
			sums.congested++
		}
		sums.lowered = max(sums.lowered, rpcdelta.MaxRedundancy-st.Budget.Redundancy)
		sums.batched = max(sums.batched, st.Budget.FramesPerPayload-1)
		for i := range st.RPCs {
			r := &st.RPCs[i]
			if r.Reliable || r.Burst == 0 { // Burst is 0 until the RPC is bound
				continue
			}
			if means[r.RPC] == nil {
				means[r.RPC] = &rpcMeans{}
			}
			means[r.RPC].add(r)
		}
	}
	return sums, means
}

func (m *rpcMeans) add(r *client.RPCStats) {
	m.conns++
	m.loss += r.Loss
	m.burst += r.Burst
	m.redundancy += float64(r.Redundancy)
	if p := &r.Pace; p.Target != 0 {
		m.pace.conns++
		m.pace.slack += p.Slack.Seconds()
		m.pace.target += p.Target.Seconds()
		m.pace.rate += p.Rate
	}
}
