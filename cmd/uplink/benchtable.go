package main

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
)

const benchNotes = `bits   a frame sent: full as the engine packs it; payload without headers, and what is around it: the headers of message
       and datagram, the seal, IP and UDP; wire is all of that in whole bytes. ack wire: in sealed datagrams of their own.
saved  wire against that of full frames, each in a sealed datagram of its own.
frames arrived in time, overtaken by newer ones, without baseline, different from what was sent (must be 0).
ns     a frame, median of several passes; encode includes taking acks, decode making them; allocs of both. -: not taken.
traces together: the geometric mean of their bits, its ratio to the first codec's; the mean of what was delivered.
paper  is rle with two sequence numbers of 32 bits a frame; their size is inferred from the paper's 32-bit ack.
`

// meansTable lays out what the traces come to together: geometric means of bits, and how they compare with the
// first codec's.
func meansTable(results []*bench.Result) [][]string {
	n := len(results)
	rows := [][]string{
		{fmt.Sprintf("%d traces", n), "payload + header", "", "frames", ""},
		{"codec", "bits", "ratio", "delivered", "wrong"},
	}
	first := 0.0
	for i := range results[0].Codecs {
		logs, delivered, wrong := 0.0, 0.0, 0
		for _, r := range results {
			c := &r.Codecs[i]
			logs += math.Log(c.PayloadBits + c.HeaderBits)
			delivered += c.DeliveredRatio
			wrong += c.Mismatches
		}
		mean := math.Exp(logs / float64(n))
		if i == 0 {
			first = mean
		}
		rows = append(rows, []string{
			results[0].Codecs[i].Name, fmt.Sprintf("%.1f", mean), fmt.Sprintf("%.3f", mean/first),
			fmt.Sprintf("%.3f %%", 100*delivered/float64(n)), fmt.Sprint(wrong),
		})
	}
	return rows
}

// benchTable lays out a result: two rows of headings, then one a codec.
func benchTable(r *bench.Result) [][]string {
	rows := [][]string{
		{"", "bits", "", "", "", "", "", "", "", "ack", "kbit/s", "", "", "frames", "", "", "", "ns", "", ""},
		{"codec", "full", "payload", "header", "datagram", "seal", "IP, UDP", "wire", "ack", "wire", "up", "down", "saved", "delivered", "late", "intra", "wrong", "encode", "decode", "allocs"},
	}
	for i := range r.Codecs {
		c := &r.Codecs[i]
		encode, decode, allocs := "-", "-", "-"
		if c.EncodeNs > 0 {
			encode, decode, allocs = fmt.Sprintf("%.0f", c.EncodeNs), fmt.Sprintf("%.0f", c.DecodeNs), fmt.Sprintf("%.2g", c.Allocs)
		}
		rows = append(rows, []string{
			c.Name,
			fmt.Sprintf("%.1f", c.FullBits),
			fmt.Sprintf("%.1f", c.PayloadBits),
			fmt.Sprintf("%.1f", c.HeaderBits),
			fmt.Sprintf("%.1f", c.DatagramBits),
			fmt.Sprintf("%.1f", c.SealBits),
			fmt.Sprintf("%.1f", c.IPBits),
			fmt.Sprintf("%.1f", c.WireBits),
			fmt.Sprintf("%.1f", c.AckBits),
			fmt.Sprintf("%.1f", c.AckWireBits),
			fmt.Sprintf("%.2f", c.UpKbits(r.RateHz)),
			fmt.Sprintf("%.2f", c.DownKbits(r.RateHz)),
			fmt.Sprintf("%.1f %%", 100*c.Saved()),
			fmt.Sprintf("%.3f %%", 100*c.DeliveredRatio),
			fmt.Sprintf("%.2f %%", 100*c.Late),
			fmt.Sprint(c.IntraFrames),
			fmt.Sprint(c.Mismatches),
			encode, decode, allocs,
		})
	}
	return rows
}
