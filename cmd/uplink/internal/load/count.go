package load

import (
	"time"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// observation contains the counts of all bots up to a time, or between two times.
type observation struct {
	at  time.Time
	cpu time.Duration

	joined, connected, ended int // current numbers of bots
	counts

	late, trips *meter.Durations // since the previous observation
}

// counts contains the counters that only grow during a run.
type counts struct {
	Reconnections, Rebinds uint64
	Handovers              uint64
	Sent                   rpcdelta.Stats
	Bytes                  uint64 // bytes of payloads
	Fates                  rpcdelta.DeliveryStats
	Reconnecting           uint64 // calls not made for lack of a connection
	Skipped                uint64 // calls not made because they were late by a period
	Link                   transport.Stats
}

// seen contains a bot's counts at the last observation.
type seen struct {
	session uint64 // 0: no session yet
	again   uint64 // number of sessions after the first
	trips   uint64 // number of round trips measured
}

// observe adds up the counters of the bots, and merges the new round trips. Calls must not overlap.
func (c *Crowd) observe() observation {
	o := observation{at: time.Now(), cpu: meter.CPU(), late: meter.NewDurations(), trips: meter.NewDurations()}
	for _, b := range c.all() {
		o.joined++
		if b.Conn == nil {
			continue
		}
		st := b.Conn.Stats()
		if b.Err() != nil {
			o.ended++
		} else if id := b.Conn.ID(); id != 0 {
			o.connected++
			if b.seen.session != 0 && b.seen.session != id {
				b.seen.again++
			}
			b.seen.session = id
		}
		handovers := min(b.handovers.Load(), b.seen.again) // each begins a session
		o.Handovers += handovers
		o.Reconnections += b.seen.again - handovers
		o.add(&st)
		trips := st.Transport.RTTs.Count()
		if trips != b.seen.trips {
			b.seen.trips = trips
			o.trips.Add(st.Transport.LastRTT)
		}
	}
	o.Rebinds = c.rebinds.Load()
	for _, p := range c.pacers {
		o.Skipped += p.skipped.Load()
		o.late.Merge(p.late.Take())
	}
	c.late.Merge(o.late)
	c.trips.Merge(o.trips)
	return o
}

func (c *counts) add(st *client.Stats) {
	c.Link = endpoint.Sum(c.Link, st.Transport)
	for i := range st.RPCs {
		rpc := &st.RPCs[i]
		c.Sent.Add(&rpc.Stats)
		c.Fates.Add(&rpc.Delivery)
		c.Bytes += rpc.Bytes
		c.Reconnecting += rpc.Reconnecting
	}
}

func between(before, o observation) observation {
	o.cpu -= before.cpu
	o.counts = meter.Difference(o.counts, before.counts)
	return o
}

// Sent returns the number of calls that the bots have sent.
func (c *Crowd) Sent() uint64 {
	o := c.observe()
	return o.Sent.Frames()
}
