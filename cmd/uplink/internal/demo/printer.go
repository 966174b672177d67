package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/meter"
	"github.com/uplink-rpc/uplink/internal/endpoint"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/table"
)

// printer writes observations as tables. On a terminal, each table replaces the previous one.
type printer struct {
	w     io.Writer
	live  bool
	json  bool
	lines int // number of lines of the last table
}

func newPrinter(w io.Writer, o *Options) *printer { return &printer{w: w, live: o.Live, json: o.JSON} }

// headings keep rows within 80 columns, so that a terminal does not wrap lines.
var headings = [][]string{
	{"", "", "both ways", "kbit/s", "", "", "", ""},
	{"RPC", "calls/s", "ratio", "up", "down", "full", "delivery", "RTT"},
}

func (t *printer) draw(o observation, elapsed time.Duration) {
	if t.json {
		t.writeLine(o, elapsed, false)
		return
	}
	rows := headings[:len(headings):len(headings)]
	for i := range o.rows {
		rows = append(rows, o.rows[i].cells(elapsed))
	}
	total := o.total()
	rows = append(rows, total.cells(elapsed))
	var b strings.Builder
	if t.live && t.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", t.lines) // moves up and clears to the end
	}
	b.WriteByte('\n')
	table.Write(&b, rows)
	kbit := func(bits float64) float64 { return kbits(bits, elapsed) }
	fmt.Fprintf(&b, "up: %.1f payloads, %.1f datagram headers, %.1f AEAD, %.1f UDP and IP\n",
		kbit(total.coded()), kbit(total.datagram()), kbit(total.seals()), kbit(total.ip()))
	if slices.ContainsFunc(append(o.rows[:len(o.rows):len(o.rows)], total), func(r row) bool { return r.wire()+r.ackBits > r.fullWire() }) {
		b.WriteString(aboveFull(&total))
	}
	t.lines = strings.Count(b.String(), "\n")
	_, _ = io.WriteString(t.w, b.String()) // a closed terminal does not stop the demo
}

// aboveFull explains a ratio above 1.
func aboveFull(total *row) string {
	if total.Sent.Redundant > 0 {
		return "ratio above 1: calls are repeated against losses; full frames would be lost\n"
	}
	return "ratio above 1: full frames have no acks; a preset lets calls share datagrams\n"
}

func (r *row) cells(elapsed time.Duration) []string {
	l := r.line(elapsed)
	one := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	return []string{
		l.RPC, fmt.Sprintf("%.0f", l.Calls), ratio(r.wire()+r.ackBits, r.fullWire()), one(l.Wire), one(l.Down), one(l.FullWire),
		one(100*l.Delivered) + " %", fmt.Sprintf("%d ms", r.rtt.Milliseconds()),
	}
}

func kbits(bits float64, elapsed time.Duration) float64 { return bits / 1000 / elapsed.Seconds() }

func ratio(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", part/whole)
}

func (t *printer) summary(o observation, elapsed time.Duration) {
	if t.json {
		t.writeLine(o, elapsed, true)
		return
	}
	fmt.Fprintf(t.w, "\nIn %.1f s:\n", elapsed.Seconds())
	t.lines = 0
	t.draw(o, elapsed)
	total := o.total()
	n := float64(max(1, total.Sent.Frames()))
	fmt.Fprintf(t.w, "A call takes %.0f bits up, %.0f down, and %.0f as a full frame. Up: %.0f of payload,\n%.0f of datagram, %.0f of AEAD and %.0f of UDP and IP. Keyframes: %d. Frames decoded: %d.\n",
		total.wire()/n, total.ackBits/n, total.fullWire()/n, total.coded()/n,
		total.datagram()/n, total.seals()/n, total.ip()/n, total.keyframes(), total.Delivered)
}

// row contains the counts of one RPC up to a time, or between two times.
type row struct {
	rpc string
	counts
	rtt time.Duration // mean RTT of the clients
	// redundancy is the current number of redundant payloads per packet, the maximum of all
	// clients.
	redundancy int
	clients    int
	// ackBits is the size of acks to the clients with all headers, in bits, divided by the number
	// of datagrams that they sent.
	ackBits float64
}

type counts struct {
	Sent              rpcdelta.Stats
	Messages          uint64 // datagrams with frames
	Bytes             uint64 // payloads of those frames, with their headers
	AEADBytes         uint64 // AEAD overhead of the datagrams
	Delivered, Missed uint64
}

// observation contains all counts up to a time, or between two times.
type observation struct {
	rows []row
	acks endpoint.Acks
}

func (d *demo) observe() observation {
	var o observation
	server := d.srv.Stats()
	o.acks = server.Acks
	for _, t := range d.traces {
		r := row{rpc: t.Schema.RPC()}
		for _, p := range d.players {
			if p.trace != t {
				continue
			}
			st := p.stats()
			conn, _ := p.now()
			sent := counts{Sent: st.Stats, Messages: st.Messages - st.Coalesced, Bytes: st.Bytes + st.CoalescedBytes, AEADBytes: st.AEADBytes}
			r.counts = meter.Sum(r.counts, sent)
			r.rtt += conn.RTT()
			r.redundancy = max(r.redundancy, st.Redundancy)
			r.clients++
		}
		if r.clients == 0 {
			continue
		}
		r.rtt /= time.Duration(r.clients)
		for i := range server.RPCs {
			if s := &server.RPCs[i]; s.RPC == r.rpc {
				r.Delivered += s.Frames()
				r.Missed += s.Missed
			}
		}
		o.rows = append(o.rows, r)
	}
	return o.divided()
}

func (o observation) since(before observation) observation {
	out := observation{acks: meter.Difference(o.acks, before.acks)}
	for i, r := range o.rows {
		r.counts = meter.Difference(r.counts, before.rows[i].counts)
		out.rows = append(out.rows, r)
	}
	return out.divided()
}

// divided returns the observation with the acks divided among the rows by their datagrams.
func (o observation) divided() observation {
	acked := uint64(0)
	for i := range o.rows {
		acked += o.rows[i].Messages
	}
	for i := range o.rows {
		o.rows[i].ackBits = o.ackBits() * float64(o.rows[i].Messages) / float64(max(1, acked))
	}
	return o
}

func (o observation) total() row {
	t := row{rpc: "all"}
	for i := range o.rows {
		r := &o.rows[i]
		t.counts = meter.Sum(t.counts, r.counts)
		t.ackBits += r.ackBits
		t.redundancy = max(t.redundancy, r.redundancy)
		t.rtt += r.rtt / time.Duration(len(o.rows))
	}
	return t
}

// Sizes of a row in bits: full frames, frames as sent, and the overhead on the wire.
func (r *row) full() float64     { return float64(r.Sent.FullBits) }
func (r *row) coded() float64    { return float64(8 * r.Bytes) }
func (r *row) datagram() float64 { return float64(8 * r.Messages * endpoint.HeaderSize) }
func (r *row) seals() float64    { return float64(8 * r.AEADBytes) }
func (r *row) ip() float64       { return float64(8 * r.Messages * endpoint.IPSize) }
func (r *row) around() float64   { return r.datagram() + r.seals() + r.ip() }
func (r *row) wire() float64     { return r.coded() + r.around() }

func (r *row) fullWire() float64 {
	return r.full() + 8*endpoint.FullOverhead*float64(r.Sent.Frames())
}

func (r *row) share() float64    { return float64(r.Delivered) / float64(max(1, r.Delivered+r.Missed)) }
func (r *row) keyframes() uint64 { return r.Sent.Keyframe + r.Sent.Reset }
func (o *observation) ackBits() float64 {
	return float64(8 * o.acks.WireBytes())
}

// Line is a row of the table as JSON.
type Line struct {
	Whole    bool      `json:"whole"`   // covers the whole time
	Seconds  float64   `json:"seconds"` // duration of the measurement
	RPCs     []RPCLine `json:"rpcs"`
	Total    RPCLine   `json:"total"`
	AckKbits float64   `json:"ack_kbits"` // on the downlink, with their datagrams
}

// RPCLine contains the figures of one RPC, in kbit/s unless stated otherwise.
type RPCLine struct {
	RPC       string  `json:"rpc"`
	Calls     float64 `json:"calls_per_second"`
	Full      float64 `json:"full_kbits"`
	Sent      float64 `json:"sent_kbits"`
	Wire      float64 `json:"wire_kbits"` // up, with all headers
	Down      float64 `json:"down_kbits"` // acks, with all headers
	FullWire  float64 `json:"full_wire_kbits"`
	WireRatio float64 `json:"wire_ratio"` // Wire and Down to FullWire
	Delivered float64 `json:"delivered"`  // share of delivered frames
	Keyframes uint64  `json:"keyframes"`
	RTT       float64 `json:"rtt_ms"`
}

func (r *row) line(elapsed time.Duration) RPCLine {
	return RPCLine{
		RPC: r.rpc, Calls: float64(r.Sent.Frames()) / elapsed.Seconds(), Full: kbits(r.full(), elapsed), Sent: kbits(r.coded(), elapsed),
		Wire: kbits(r.wire(), elapsed), Down: kbits(r.ackBits, elapsed), FullWire: kbits(r.fullWire(), elapsed),
		WireRatio: (r.wire() + r.ackBits) / max(1, r.fullWire()), Delivered: r.share(), Keyframes: r.keyframes(), RTT: 1e3 * r.rtt.Seconds(),
	}
}

func (t *printer) writeLine(o observation, elapsed time.Duration, whole bool) {
	l := Line{Whole: whole, Seconds: elapsed.Seconds(), AckKbits: kbits(o.ackBits(), elapsed)}
	for i := range o.rows {
		l.RPCs = append(l.RPCs, o.rows[i].line(elapsed))
	}
	total := o.total()
	l.Total = total.line(elapsed)
	_ = json.NewEncoder(t.w).Encode(l) // fails only if the reader has ended
}
