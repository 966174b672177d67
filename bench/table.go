package main

import (
	"fmt"
	"strings"

	"github.com/uplink-rpc/uplink/bench/internal/compare"
	"github.com/uplink-rpc/uplink/bench/internal/peer"
	"github.com/uplink-rpc/uplink/internal/lab/table"
)

const notes = `bits  payload in whole bytes and header of the message, over the frames delivered; no datagram, UDP or IP. The same
      frames, baselines, headers and losses for all: the second half of each trace, a round trip of 100 ms, the default
      ack rate. Means over traces are geometric.
ns    of a frame sent and of a payload that arrived, fastest of several passes, at 5 % loss. One run: compare them with
      each other. Those of paper, rle and adaptive have acks, headers and learning in them, those of peers have not.
*     general-purpose. zstd and flate have dictionaries made of the first half of the trace, and quake3 a Huffman code.
      adaptive has the built-in prior, which was made of the repository's traces, both halves.
+     two sequence numbers of 32 bits a frame, a size inferred from the paper's 32-bit ack.
`

// tables lays out all that was found.
func tables(results []*compare.Result, s *compare.Summary) string {
	var b strings.Builder
	b.WriteString("bits a delivered frame by loss, and ns a frame\n\n")
	table.Write(&b, meanTable(s))
	b.WriteString("\nbits a frame without loss\n\n")
	table.Write(&b, traceTable(results))
	b.WriteString("\nbits of adaptive over those of the general-purpose peer that is best at the trace and loss\n\n")
	table.Write(&b, ratioTable(s))
	b.WriteString("\n" + notes)
	return b.String()
}

func meanTable(s *compare.Summary) [][]string {
	head := []string{""}
	for _, loss := range s.Losses {
		head = append(head, percent(loss))
	}
	last := len(s.Losses) - 1
	rows := [][]string{append(head, "delivered at "+percent(s.Losses[last]), "encode ns", "decode ns")}
	for _, m := range s.Means {
		row := []string{label(m.Name, m.Class)}
		for _, v := range m.Bits {
			row = append(row, fmt.Sprintf("%.1f", v))
		}
		row = append(row, fmt.Sprintf("%.2f %%", 100*m.Delivered[last]), fmt.Sprintf("%.0f", m.EncodeNs), fmt.Sprintf("%.0f", m.DecodeNs))
		rows = append(rows, row)
	}
	return rows
}

// label marks the general-purpose peers, and what is inferred.
func label(name string, class peer.Class) string {
	switch {
	case class == peer.General:
		return name + " *"
	case name == compare.Paper:
		return name + " +"
	}
	return name
}

func traceTable(results []*compare.Result) [][]string {
	rows := [][]string{{""}}
	for _, r := range results {
		rows[0] = append(rows[0], r.Trace)
	}
	for i, first := range results[0].Schemes {
		row := []string{label(first.Name, first.Class)}
		for _, r := range results {
			row = append(row, fmt.Sprintf("%.1f", r.Schemes[i].Points[0].Bits))
		}
		rows = append(rows, row)
	}
	best := []string{"best *"}
	for _, r := range results {
		best = append(best, r.Best(0).Name)
	}
	return append(rows, best)
}

func ratioTable(s *compare.Summary) [][]string {
	head := []string{""}
	for _, loss := range s.Losses {
		head = append(head, percent(loss))
	}
	rows := [][]string{head}
	for _, r := range s.Ratios {
		rows = append(rows, append([]string{r.Name}, numbers(r.Loss)...))
	}
	return rows
}

func numbers(values []float64) (cells []string) {
	for _, v := range values {
		cells = append(cells, fmt.Sprintf("%.3f", v))
	}
	return cells
}

func percent(loss float64) string { return fmt.Sprintf("%g %%", 100*loss) }
