package demo

import (
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/transport"
)

// row is what one RPC's clients and the server counted up to a moment, or
// between two.
type row struct {
	rpc       string
	sent      rpcdelta.Stats
	messages  uint64 // datagrams with frames
	bytes     uint64 // of those frames' payloads with their headers
	sealBytes uint64 // of the datagrams' seals
	delivered uint64
	missed    uint64
	rtt       time.Duration // mean of the clients
	// lastRTT is the mean of what the clients measured last: it follows a change at once.
	lastRTT time.Duration
	// redundancy is how many older payloads ride along now, the most of the clients.
	redundancy int
}

// observation is all that was counted up to a moment, or between two.
type observation struct {
	rows []row
	acks ds.AckStats
}

func (d *demo) observe() observation {
	var o observation
	server := d.srv.Stats()
	o.acks = server.Acks
	for _, t := range d.traces {
		r := row{rpc: t.Schema.RPC()}
		clients := 0
		for _, p := range d.players {
			if p.trace != t {
				continue
			}
			st := p.stats()
			conn, _ := p.now()
			r.sent.Add(&st.Stats)
			r.messages += st.Messages
			r.bytes += st.Bytes
			r.sealBytes += st.AEADBytes
			r.rtt += conn.RTT()
			r.lastRTT += conn.Stats().Transport.LastRTT
			r.redundancy = max(r.redundancy, st.Redundancy)
			clients++
		}
		if clients == 0 {
			continue
		}
		r.rtt /= time.Duration(clients)
		r.lastRTT /= time.Duration(clients)
		for i := range server.RPCs {
			if s := &server.RPCs[i]; s.RPC == r.rpc {
				r.delivered += s.Frames()
				r.missed += s.Missed
			}
		}
		o.rows = append(o.rows, r)
	}
	return o
}

// since gives what was counted after an earlier observation.
func (o observation) since(before observation) observation {
	out := observation{acks: ds.AckStats{
		Messages:  o.acks.Messages - before.acks.Messages,
		Bytes:     o.acks.Bytes - before.acks.Bytes,
		AEADBytes: o.acks.AEADBytes - before.acks.AEADBytes,
	}}
	for i, r := range o.rows {
		b := &before.rows[i]
		r.sent.FullBits -= b.sent.FullBits
		r.sent.Delta -= b.sent.Delta
		r.sent.Keyframe -= b.sent.Keyframe
		r.sent.Reset -= b.sent.Reset
		r.messages -= b.messages
		r.bytes -= b.bytes
		r.sealBytes -= b.sealBytes
		r.delivered -= b.delivered
		r.missed -= b.missed
		out.rows = append(out.rows, r)
	}
	return out
}

// total adds up all RPCs.
func (o observation) total() row {
	t := row{rpc: "all"}
	for _, r := range o.rows {
		t.sent.Add(&r.sent)
		t.messages += r.messages
		t.bytes += r.bytes
		t.sealBytes += r.sealBytes
		t.delivered += r.delivered
		t.missed += r.missed
		t.redundancy = max(t.redundancy, r.redundancy)
		t.rtt += r.rtt / time.Duration(len(o.rows))
		t.lastRTT += r.lastRTT / time.Duration(len(o.rows))
	}
	return t
}

// Bits of a row: the frames in full and as sent, both as messages; and the parts of
// what surrounds these on the wire.
func (r *row) full() float64     { return float64(r.sent.FullBits) }
func (r *row) coded() float64    { return float64(8 * r.bytes) }
func (r *row) datagram() float64 { return float64(8 * r.messages * transport.HeaderSize) }
func (r *row) seals() float64    { return float64(8 * r.sealBytes) }
func (r *row) ip() float64       { return float64(8 * r.messages * transport.IPSize) }
func (r *row) around() float64   { return r.datagram() + r.seals() + r.ip() }

func (r *row) share() float64   { return float64(r.delivered) / float64(max(1, r.delivered+r.missed)) }
func (r *row) noDeltas() uint64 { return r.sent.Keyframe + r.sent.Reset }
func (o *observation) ackBits() float64 {
	return float64(8 * (o.acks.Bytes + o.acks.AEADBytes + o.acks.Messages*(transport.HeaderSize+transport.IPSize)))
}
