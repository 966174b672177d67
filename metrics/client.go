package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// Client collects what client connections count, all added up, as
// uplink_client_*. Register it with a registry of your own; it is safe for
// concurrent use.
type Client struct {
	rpcs  rpcDescs
	links linkDescs
	downs downDescs

	ackBytes, lost *prometheus.Desc
	budget         budgetDescs
	state          stateDescs
	build          buildDesc

	mu    sync.Mutex
	conns []*client.Conn
	past  clientCounts // of those that were replaced
}

var _ prometheus.Collector = (*Client)(nil)

// NewClient makes the collector of one connection, or of several, as bots have
// them.
func NewClient(conns ...*client.Conn) *Client {
	f := family{"uplink_client_"}
	return &Client{
		budget:   f.budget(),
		state:    f.state(),
		build:    f.build(),
		conns:    slices.Clone(conns),
		rpcs:     f.rpcs("sent"),
		links:    f.links(),
		downs:    f.downstreams("received"),
		ackBytes: f.desc("ack_bytes_total", "Bytes of the ack messages received, without headers."),
		lost:     f.desc("lost_datagrams_total", "Datagrams of the server that never came."),
	}
}

// Replace has next collected in the place of old, which is closed. What old counted
// stays in the sums, so that no counter goes back; the connection itself is let go.
func (c *Client) Replace(old, next *client.Conn) {
	st := old.Stats()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.conns, old)
	if i < 0 {
		return
	}
	c.conns[i] = next
	c.past.add(&st)
}

// Describe implements prometheus.Collector.
func (c *Client) Describe(ch chan<- *prometheus.Desc) {
	c.rpcs.describe(ch)
	c.links.describe(ch)
	c.downs.describe(ch)
	ch <- c.ackBytes
	ch <- c.lost
	c.budget.describe(ch)
	c.state.describe(ch)
	c.build.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Client) Collect(ch chan<- prometheus.Metric) {
	e := emitter(ch)
	sums, now, b := c.sums()
	for _, r := range sums.rpcs.order {
		e.rpc(&c.rpcs, r.RPC, r.Reliable, &r.Stats, payloads{r.Messages, r.Bytes, r.Coalesced, r.CoalescedBytes, r.AEADBytes}, r.PriorFallbacks)
		var drops reasons
		drops.add("out_of_range", r.OutOfRange)
		drops.add("too_large", r.TooLarge)
		drops.add("unencodable", r.Unencodable)
		drops.add("reconnecting", r.Reconnecting)
		if !r.Reliable {
			e.counter(c.state.pace.missing, r.Pace.Missing, r.RPC)
			e.counter(c.state.pace.late, r.Pace.Late, r.RPC)
		}
		e.drops(c.links.drops, &drops, r.RPC, channel(r.Reliable))
	}
	for i := range sums.downs {
		e.clientDown(&c.downs, &sums.downs[i], c.links.drops)
	}
	t := &sums.transport
	var drops reasons
	drops.add("malformed", sums.malformed)
	for reason, n := range t.Dropped.All() {
		drops.add(reason, n)
	}
	e.drops(c.links.drops, &drops, "", "")
	e.link(&c.links, t.DatagramsSent, t.BytesSent, t.DatagramsReceived, t.BytesReceived, t.SendFailed, &t.RTTs)
	e.counter(c.ackBytes, sums.ackBytes)
	e.counter(c.lost, t.Lost)
	e.budget(&c.budget, &b)
	e.state(&c.state, &now)
	e.build(&c.build)
}

// sums gives what was counted, and how the connections are now.
func (c *Client) sums() (sums clientCounts, now states, b budgets) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums = c.past.clone()
	b.over = sums.over
	for _, conn := range c.conns {
		st := conn.Stats()
		sums.add(&st)
		b.add(&st.Budget)
		now.add(&st)
	}
	return sums, now, b
}

// clientCounts adds up what connections counted.
type clientCounts struct {
	transport           transport.Stats
	ackBytes, malformed uint64
	over                uint64 // bits
	rpcs                rpcTable
	downs               []client.ReplicationStats // by name
}

func (s *clientCounts) add(st *client.Stats) {
	s.transport = s.transport.Plus(st.Transport)
	s.ackBytes += st.AckBytes
	s.malformed += st.Malformed
	s.over += st.Budget.OverBits
	for i := range st.RPCs {
		s.rpcs.add(&st.RPCs[i])
	}
	for i := range st.Replication {
		r := &st.Replication[i]
		if n := slices.IndexFunc(s.downs, func(d client.ReplicationStats) bool { return d.Name == r.Name }); n >= 0 {
			s.downs[n].Add(r)
		} else {
			s.downs = append(s.downs, *r)
		}
	}
}

func (s *clientCounts) clone() clientCounts {
	out := *s
	out.rpcs, out.downs = rpcTable{}, slices.Clone(s.downs)
	for _, r := range s.rpcs.order {
		out.rpcs.add(r)
	}
	return out
}

// rpcTable adds up the counts of RPCs of the same name and channel.
type rpcTable struct {
	order []*client.RPCStats
	index map[rpcKey]*client.RPCStats
}

type rpcKey struct {
	name     string
	reliable bool
}

func (t *rpcTable) add(r *client.RPCStats) {
	k := rpcKey{r.RPC, r.Reliable}
	sum := t.index[k]
	if sum == nil {
		if t.index == nil {
			t.index = map[rpcKey]*client.RPCStats{}
		}
		sum = &client.RPCStats{RPC: r.RPC, Reliable: r.Reliable, Stats: rpcdelta.Stats{}}
		t.index[k] = sum
		t.order = append(t.order, sum)
	}
	sum.Add(&r.Stats)
	sum.Messages += r.Messages
	sum.Bytes += r.Bytes
	sum.Coalesced += r.Coalesced
	sum.CoalescedBytes += r.CoalescedBytes
	sum.AEADBytes += r.AEADBytes
	sum.OutOfRange += r.OutOfRange
	sum.TooLarge += r.TooLarge
	sum.Unencodable += r.Unencodable
	sum.Reconnecting += r.Reconnecting
	sum.PriorFallbacks += r.PriorFallbacks
	sum.Pace.Missing += r.Pace.Missing
	sum.Pace.Late += r.Pace.Late
}
