package bots

import (
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// observation is what all bots counted up to a moment, or between two.
type observation struct {
	at  time.Time
	cpu time.Duration

	joined, connected, ended int // bots, now
	reconnections, rebinds   uint64

	sent         rpcdelta.Stats
	bytes        uint64 // of their payloads
	fates        rpcdelta.DeliveryStats
	reconnecting uint64 // calls not made for it
	skipped      uint64 // calls not made since they would have been a period late
	link         transport.Stats

	late, trips *meter.Durations // since the observation before
}

// seen is what was seen of a bot the last time.
type seen struct {
	session uint64 // 0: none yet
	again   uint64 // sessions after the first
	trips   uint64 // round trips measured
}

// observe adds up what the bots count, and takes in the round trips that were measured since the last time. One call at
// a time.
func (r *run) observe() observation {
	o := observation{at: time.Now(), cpu: meter.CPU(), late: meter.NewDurations(), trips: meter.NewDurations()}
	for _, b := range r.all() {
		o.joined++
		st := b.conn.Stats()
		if b.over() != nil {
			o.ended++
		} else if id := b.conn.ID(); id != 0 {
			o.connected++
			b.seen.meet(id)
		}
		o.reconnections += b.seen.again
		o.add(&st)
		trips := total(&st.Transport.RTTs)
		if trips != b.seen.trips {
			b.seen.trips = trips
			o.trips.Add(st.Transport.LastRTT)
		}
	}
	o.rebinds = r.rebinds.Load()
	for _, p := range r.pacers {
		o.skipped += p.skipped.Load()
		o.late.Merge(p.late.Take())
	}
	r.late.Merge(o.late)
	r.trips.Merge(o.trips)
	return o
}

// meet notes the session that a bot has.
func (s *seen) meet(session uint64) {
	if s.session != 0 && s.session != session {
		s.again++
	}
	s.session = session
}

func (o *observation) add(st *client.Stats) {
	o.link = o.link.Plus(st.Transport)
	for i := range st.RPCs {
		rpc := &st.RPCs[i]
		o.sent.Add(&rpc.Stats)
		o.fates.Add(&rpc.Delivery)
		o.bytes += rpc.Bytes
		o.reconnecting += rpc.Reconnecting
	}
}

// between gives what was counted after an earlier observation.
func between(before, o observation) observation {
	d := o
	d.cpu -= before.cpu
	d.reconnections -= before.reconnections
	d.rebinds -= before.rebinds
	d.sent.Delta -= before.sent.Delta
	d.sent.Keyframe -= before.sent.Keyframe
	d.sent.Reset -= before.sent.Reset
	d.sent.FullBits -= before.sent.FullBits
	d.bytes -= before.bytes
	d.fates.Processed -= before.fates.Processed
	d.fates.Lost -= before.fates.Lost
	d.fates.Delivered -= before.fates.Delivered
	d.fates.Missed -= before.fates.Missed
	d.reconnecting -= before.reconnecting
	d.skipped -= before.skipped
	d.link.DatagramsSent -= before.link.DatagramsSent
	d.link.BytesSent -= before.link.BytesSent
	d.link.DatagramsReceived -= before.link.DatagramsReceived
	d.link.BytesReceived -= before.link.BytesReceived
	d.link.SendFailed -= before.link.SendFailed
	d.link.Lost -= before.link.Lost
	return d
}

func total(r *transport.RTTHistogram) (n uint64) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}
