package dashboard

import (
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/transport"
)

// flow is what was counted of one RPC on one channel, since the server began or between two
// moments. Bits are those of the unit that the parts of a stack have.
type flow struct {
	RPC      string `json:"rpc"`
	Reliable bool   `json:"reliable"`

	Calls  uint64 `json:"calls"` // delivered
	Missed uint64 `json:"missed"`
	Late   uint64 `json:"late"`
	Delta  uint64 `json:"delta"`
	Intra  uint64 `json:"intra"`
	Reset  uint64 `json:"reset"`

	Payloads uint64 `json:"payloads"`
	Older    uint64 `json:"older"` // frames that rode along in them
	Age      uint64 `json:"age"`   // of the deltas' baselines, added up

	Full   uint64 `json:"full"`   // bits, as an engine packs the calls
	Coded  uint64 `json:"coded"`  // as sent
	Header uint64 `json:"header"` // of messages
	Seal   uint64 `json:"seal"`
	Around uint64 `json:"around"` // headers of datagrams, UDP and IP

	Fallbacks uint64            `json:"fallbacks"`
	Drops     map[string]uint64 `json:"drops,omitempty"`
}

// newFlow takes what a server counted.
func newFlow(r *ds.RPCStats) flow {
	header := uint64(transport.HeaderSize + transport.IPSize)
	if r.Reliable {
		header += transport.SegmentSize
	}
	return flow{
		RPC: r.RPC, Reliable: r.Reliable,
		Calls: r.Frames(), Missed: r.Missed, Late: r.LateFrames, Delta: r.Delta, Intra: r.Intra, Reset: r.Reset,
		Payloads: r.Messages, Older: r.Older, Age: r.AgeSum,
		Full: r.FullBits, Coded: r.PayloadBits, Header: since(8*r.Bytes, r.PayloadBits), Seal: 8 * r.AEADBytes,
		Around:    8 * (r.CoalescedBytes + (r.Messages-r.Coalesced)*header),
		Fallbacks: r.PriorFallbacks,
		Drops:     dropped(r.Drops[:]),
	}
}

// since is what was counted after before: the counts of frames missed can fall, when a late one
// comes.
func since(now, before uint64) uint64 { return now - min(now, before) }

// since gives what was counted after an earlier moment.
func (f flow) since(o *flow) flow {
	for _, c := range []struct {
		now    *uint64
		before uint64
	}{
		{&f.Calls, o.Calls},
		{&f.Missed, o.Missed},
		{&f.Late, o.Late},
		{&f.Delta, o.Delta},
		{&f.Intra, o.Intra},
		{&f.Reset, o.Reset},
		{&f.Payloads, o.Payloads},
		{&f.Older, o.Older},
		{&f.Age, o.Age},
		{&f.Full, o.Full},
		{&f.Coded, o.Coded},
		{&f.Header, o.Header},
		{&f.Seal, o.Seal},
		{&f.Around, o.Around},
		{&f.Fallbacks, o.Fallbacks},
	} {
		*c.now = since(*c.now, c.before)
	}
	f.Drops = more(f.Drops, o.Drops)
	return f
}

// dropped names the counts that are not 0.
func dropped(counts []uint64) map[string]uint64 {
	var out map[string]uint64
	for d, n := range counts {
		out = plus(out, ds.Drop(d).String(), n)
	}
	return out
}

func plus(m map[string]uint64, reason string, n uint64) map[string]uint64 {
	if n == 0 {
		return m
	}
	if m == nil {
		m = map[string]uint64{}
	}
	m[reason] += n
	return m
}

// more gives by how much counts have grown.
func more(now, before map[string]uint64) map[string]uint64 {
	var out map[string]uint64
	for reason, n := range now {
		out = plus(out, reason, since(n, before[reason]))
	}
	return out
}

// totals is what belongs to no RPC.
type totals struct {
	Players  int    `json:"players"`
	Acks     uint64 `json:"acks"`      // datagrams
	AckBits  uint64 `json:"ack_bits"`  // of them down to IP
	Trips    uint64 `json:"trips"`     // round trips that were measured
	TripTime uint64 `json:"trip_time"` // microseconds, added up
	Moves    uint64 `json:"moves"`
	Received uint64 `json:"received"` // datagrams
	// Drops have the reasons for which datagrams, messages and handshakes were dropped.
	Drops map[string]uint64 `json:"drops,omitempty"`
}

// observation is what a server counted up to a moment.
type observation struct {
	at    time.Time
	flows []flow
	totals
}

func observe(src Source, now time.Time) observation {
	st := src.Stats()
	o := observation{at: now}
	for i := range st.RPCs {
		o.flows = append(o.flows, newFlow(&st.RPCs[i]))
	}
	t := &st.Transport
	o.totals = totals{
		Players: t.Open,
		Acks:    st.Acks.Messages,
		AckBits: 8 * (st.Acks.Bytes + st.Acks.AEADBytes + st.Acks.Messages*(transport.HeaderSize+transport.IPSize)),
		Moves:   t.PathMigrations, Received: t.DatagramsReceived,
		TripTime: uint64(t.RTTs.Sum.Microseconds()),
		Drops:    dropped(st.Drops[:]),
	}
	for _, n := range t.RTTs.Counts {
		o.Trips += n
	}
	for reason, n := range t.Dropped.All() {
		o.Drops = plus(o.Drops, reason, n)
	}
	return o
}

// sample is what happened between two moments.
type sample struct {
	At      int64   `json:"t"`  // milliseconds since 1970
	Seconds float64 `json:"dt"` // since the one before
	totals
	RPCs []flow `json:"rpcs"`
	// Link and Bits are there while a page is open.
	Link *link   `json:"link,omitempty"`
	Bits []spent `json:"bits,omitempty"`
}

// payloads is how many came in a second.
func (s *sample) payloads() uint64 {
	n := uint64(0)
	for i := range s.RPCs {
		n += s.RPCs[i].Payloads
	}
	return uint64(float64(n) / max(s.Seconds, 0.001))
}

// since gives what happened after an earlier moment.
func (o *observation) since(before *observation) sample {
	s := sample{At: o.at.UnixMilli(), Seconds: o.at.Sub(before.at).Seconds(), totals: o.totals}
	s.Acks = since(s.Acks, before.Acks)
	s.AckBits = since(s.AckBits, before.AckBits)
	s.Trips = since(s.Trips, before.Trips)
	s.TripTime = since(s.TripTime, before.TripTime)
	s.Moves = since(s.Moves, before.Moves)
	s.Received = since(s.Received, before.Received)
	s.Drops = more(s.Drops, before.Drops)
	s.RPCs = make([]flow, len(o.flows))
	for i, f := range o.flows {
		var was flow
		for j := range before.flows {
			if b := &before.flows[j]; b.RPC == f.RPC && b.Reliable == f.Reliable {
				was = *b
			}
		}
		s.RPCs[i] = f.since(&was)
	}
	return s
}
