package demo

import (
	"encoding/json"
	"time"
)

// Line is an observation as JSON: what the table shows.
type Line struct {
	Whole    bool      `json:"whole"`   // of all the time, and not of the last second
	Seconds  float64   `json:"seconds"` // that it is of
	RPCs     []RPCLine `json:"rpcs"`
	Total    RPCLine   `json:"total"`
	AckKbits float64   `json:"ack_kbits"` // down, with their datagrams
}

// RPCLine is a row of it, in kbit/s where nothing else is said.
type RPCLine struct {
	RPC        string  `json:"rpc"`
	Calls      float64 `json:"calls_per_second"`
	Full       float64 `json:"full_kbits"`
	Sent       float64 `json:"sent_kbits"`
	Wire       float64 `json:"wire_kbits"`
	Delivered  float64 `json:"delivered"` // share
	NoBaseline uint64  `json:"without_baseline"`
	RoundTrip  float64 `json:"round_trip_ms"`
}

func (r *row) line(elapsed time.Duration) RPCLine {
	return RPCLine{
		RPC: r.rpc, Calls: float64(r.sent.Frames()) / elapsed.Seconds(), Full: kbits(r.full(), elapsed), Sent: kbits(r.coded(), elapsed),
		Wire: kbits(r.coded()+r.around(), elapsed), Delivered: r.share(), NoBaseline: r.noDeltas(), RoundTrip: 1e3 * r.rtt.Seconds(),
	}
}

// writeLine writes the observation as a line of JSON.
func (t *printer) writeLine(o observation, elapsed time.Duration, whole bool) {
	l := Line{Whole: whole, Seconds: elapsed.Seconds(), AckKbits: kbits(o.ackBits(), elapsed)}
	for i := range o.rows {
		l.RPCs = append(l.RPCs, o.rows[i].line(elapsed))
	}
	total := o.total()
	l.Total = total.line(elapsed)
	_ = json.NewEncoder(t.w).Encode(l) // whoever reads it may be gone
}
