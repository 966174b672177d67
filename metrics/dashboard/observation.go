package dashboard

import (
	"reflect"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/replication"
)

// flow contains the counts of one RPC on one channel, since the server started or between two
// samples.
type flow struct {
	RPC      string `json:"rpc"`
	Reliable bool   `json:"reliable"`

	Calls    uint64 `json:"calls"` // delivered frames
	Missed   uint64 `json:"missed"`
	Late     uint64 `json:"late"`
	Delta    uint64 `json:"delta"`
	Keyframe uint64 `json:"keyframe"`
	Reset    uint64 `json:"reset"`

	Age uint64 `json:"age"` // sum of the ages of the deltas' baselines, in frames

	// The following fields count the data that clients sent if Config.Sent is set, and otherwise
	// the data that the server received.
	Frames    uint64 `json:"frames"` // new frames
	Payloads  uint64 `json:"payloads"`
	Datagrams uint64 `json:"datagrams"`
	Redundant uint64 `json:"redundant"` // redundant frames

	Full    uint64 `json:"full"`    // bits of full frames
	Encoded uint64 `json:"encoded"` // bits of payloads without headers
	Header  uint64 `json:"header"`  // bits of payload headers
	AEAD    uint64 `json:"aead"`    // bits of AEAD overhead
	Headers uint64 `json:"headers"` // bits of the headers of datagrams, UDP and IP

	Fallbacks uint64            `json:"fallbacks"`
	Drops     map[string]uint64 `json:"drops,omitempty"`
}

func newFlow(r *ds.RPCStats) flow {
	header := uint64(endpoint.HeaderSize + endpoint.IPSize)
	if r.Reliable {
		header = endpoint.SegmentHeaderSize + endpoint.IPSize
	}
	return flow{
		RPC: r.RPC, Reliable: r.Reliable,
		Calls: r.Frames(), Missed: r.Missed, Late: r.LateFrames, Delta: r.Delta, Keyframe: r.Keyframe, Reset: r.Reset,
		Age:    r.AgeSum,
		Frames: r.Frames(), Payloads: r.Messages, Datagrams: r.Datagrams(), Redundant: r.Redundant,
		Full: r.FullBits, Encoded: r.PayloadBits, Header: since(8*r.Bytes, r.PayloadBits), AEAD: 8 * r.AEADBytes,
		Headers:   8 * (r.CoalescedBytes + (r.Messages-r.Coalesced)*header),
		Fallbacks: r.PriorFallbacks,
		Drops:     dropped(r.Drops[:]),
	}
}

// setSent replaces the counts of received data by the counts of sent data in r.
func (f *flow) setSent(r *ds.RPCStats) {
	sent := newFlow(r)
	f.Frames, f.Payloads, f.Datagrams, f.Redundant = sent.Frames, sent.Payloads, sent.Datagrams, sent.Redundant
	f.Full, f.Encoded, f.Header, f.AEAD, f.Headers = sent.Full, sent.Encoded, sent.Header, sent.AEAD, sent.Headers
}

// since returns now-before, or 0: the count of missed frames decreases when a late frame arrives.
func since(now, before uint64) uint64 { return now - min(now, before) }

// subtract subtracts the counts in before, a struct, from those in now, a pointer to such a struct.
func subtract(now, before any) {
	v, b := reflect.ValueOf(now).Elem(), reflect.ValueOf(before)
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(since(f.Uint(), b.Field(i).Uint()))
		case reflect.Map:
			f.Set(reflect.ValueOf(more(f.Interface().(map[string]uint64), b.Field(i).Interface().(map[string]uint64))))
		default:
		}
	}
}

// dropped returns the counts that are not 0, by reason.
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

func more(now, before map[string]uint64) map[string]uint64 {
	var out map[string]uint64
	for reason, n := range now {
		out = plus(out, reason, since(n, before[reason]))
	}
	return out
}

// world contains the counts of one world that the server sends, since the server started or between
// two samples.
type world struct {
	Name    string  `json:"name"`
	Players int     `json:"players"` // number of players who receive it now
	Age     int     `json:"age"`     // age of the oldest baseline in use, in ticks
	AckAge  int     `json:"ack_age"` // maximum ack age of all players, in ticks
	Objects int     `json:"objects"` // objects that the players have, summed over players
	Waiting int     `json:"waiting"` // objects that wait for bandwidth, summed over players
	TickHz  float64 `json:"tick_hz"`

	Ticks     uint64 `json:"ticks"`
	Encodings uint64 `json:"encodings"`
	Messages  uint64 `json:"messages"`
	Updates   uint64 `json:"updates"`
	Acked     uint64 `json:"acked"`
	Unsent    uint64 `json:"unsent"`
	Resets    uint64 `json:"resets"`
	Keyframes uint64 `json:"keyframes"`
	Sharing   uint64 `json:"sharing"` // sum over all messages of the number of players who share the encoding
	Bits      uint64 `json:"bits"`    // bits of datagrams, with all headers down to IP
	AckBits   uint64 `json:"ack_bits"`
}

func newWorld(r *replication.Stats) world {
	return world{
		Name: r.Name, Players: r.Ready, Age: int(r.BaselineAge), Ticks: r.Ticks, Encodings: r.Encodings, Messages: r.Messages,
		Updates: r.Updates, Acked: r.Acked, Unsent: r.Unsent, Resets: r.Resets, Bits: 8 * r.WireBytes(), AckBits: 8 * r.AckBytes,
		AckAge: int(r.AckAge), Objects: r.Objects, Waiting: r.Waiting, TickHz: r.TickHz, Keyframes: r.Keyframes, Sharing: r.Sharing,
	}
}

// buffers describes the jitter buffers of one RPC, of all players or of one.
type buffers struct {
	RPC     string `json:"rpc"`
	Buffers int    `json:"buffers"` // current number of buffers
	Held    int    `json:"held"`    // frames that wait now
	Slack   int64  `json:"slack"`   // current mean, in microseconds
	Target  int64  `json:"target"`  // current mean, in microseconds

	Released  uint64 `json:"released"`
	Missing   uint64 `json:"missing"` // ticks without their frame, including Dry and Repeated
	Dry       uint64 `json:"dry"`
	Repeated  uint64 `json:"repeated"`
	Late      uint64 `json:"late"` // late frames
	Discarded uint64 `json:"discarded"`
	Resyncs   uint64 `json:"resyncs"`
}

func newBuffers(rpc string, b *ds.BufferStats) buffers {
	return buffers{
		RPC: rpc, Buffers: b.Buffers, Held: b.Held, Slack: b.Slack.Microseconds(), Target: b.Target.Microseconds(),
		Released: b.Released, Missing: b.Missing, Dry: b.Dry, Repeated: b.Repeated, Late: b.Late, Discarded: b.Skipped + b.Early, Resyncs: b.Resyncs,
	}
}

type totals struct {
	Players        int    `json:"players"`
	Acks           uint64 `json:"acks"`     // datagrams with acks
	AckBits        uint64 `json:"ack_bits"` // bits of these datagrams, including all headers down to IP
	RTTs           uint64 `json:"rtts"`     // round-trip time measurements
	RTTTime        uint64 `json:"rtt_time"` // sum of the measurements, in microseconds
	PathMigrations uint64 `json:"path_migrations"`
	Received       uint64 `json:"received"` // received datagrams
	// Lost counts datagrams that clients sent and that did not arrive; 0 if Config.Sent is set.
	Lost     uint64 `json:"lost"`
	Happened uint64 `json:"happened"` // events of sessions
	// Drops counts dropped datagrams, messages and handshakes by reason.
	Drops map[string]uint64 `json:"drops,omitempty"`
}

type observation struct {
	at      time.Time
	flows   []flow
	worlds  []world
	buffers []buffers
	totals
}

// observe reads the counts of the server, and those of clients from sent unless that is nil.
func observe(src source, sent func() []ds.RPCStats, now time.Time) observation {
	st := src.Stats()
	o := observation{at: now}
	for i := range st.RPCs {
		r := &st.RPCs[i]
		o.flows = append(o.flows, newFlow(r))
		if b := &r.Buffer; b.Buffers > 0 || b.Released+b.Missing > 0 {
			o.buffers = append(o.buffers, newBuffers(r.RPC, b))
		}
	}
	for i := range st.Replication {
		o.worlds = append(o.worlds, newWorld(&st.Replication[i]))
	}
	if sent != nil {
		for _, r := range sent() {
			if i := slices.IndexFunc(o.flows, func(f flow) bool { return f.RPC == r.RPC && f.Reliable == r.Reliable }); i >= 0 {
				o.flows[i].setSent(&r)
			}
		}
	}
	t := &st.Transport
	o.totals = totals{
		Players: t.Open,
		Acks:    st.Acks.Messages,
		AckBits: 8 * st.Acks.WireBytes(),
		RTTTime: uint64(t.RTTs.Sum.Microseconds()), PathMigrations: t.PathMigrations, Received: t.DatagramsReceived,
		Drops: dropped(st.Drops[:]),
	}
	if sent == nil {
		o.Lost = t.Lost
	}
	o.RTTs += t.RTTs.Count()
	for reason, n := range t.Dropped.All() {
		o.Drops = plus(o.Drops, reason, n)
	}
	for i := range st.Events {
		o.Happened += st.Events[i].Count
	}
	return o
}

type sample struct {
	At      int64   `json:"t"`  // milliseconds since 1970
	Seconds float64 `json:"dt"` // since the previous sample
	totals
	RPCs    []flow    `json:"rpcs"`
	Worlds  []world   `json:"worlds,omitempty"`
	Buffers []buffers `json:"buffers,omitempty"`
	// Link and Bits are set while a page is open.
	Link *link   `json:"link,omitempty"`
	Bits []spent `json:"bits,omitempty"`
}

func (s *sample) payloads() uint64 {
	n := uint64(0)
	for i := range s.RPCs {
		n += s.RPCs[i].Payloads
	}
	return uint64(float64(n) / max(s.Seconds, 0.001))
}

func (o *observation) since(before *observation) sample {
	s := sample{At: o.at.UnixMilli(), Seconds: o.at.Sub(before.at).Seconds(), totals: o.totals, RPCs: slices.Clone(o.flows), Worlds: slices.Clone(o.worlds), Buffers: slices.Clone(o.buffers)}
	subtract(&s.totals, before.totals)
	for i := range s.RPCs {
		f := &s.RPCs[i]
		if j := slices.IndexFunc(before.flows, func(b flow) bool { return b.RPC == f.RPC && b.Reliable == f.Reliable }); j >= 0 {
			subtract(f, before.flows[j])
		}
	}
	for i := range s.Worlds {
		w := &s.Worlds[i]
		if j := slices.IndexFunc(before.worlds, func(b world) bool { return b.Name == w.Name }); j >= 0 {
			subtract(w, before.worlds[j])
		}
	}
	for i := range s.Buffers {
		b := &s.Buffers[i]
		if j := slices.IndexFunc(before.buffers, func(o buffers) bool { return o.RPC == b.RPC }); j >= 0 {
			subtract(b, before.buffers[j])
		}
	}
	return s
}
