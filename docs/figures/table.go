package main

import (
	"fmt"
	"strings"
)

// result is what bench says of a trace, as far as it is shown.
type result struct {
	Trace  string
	Codecs []map[string]any
}

// wrong says that a codec delivered frames that differ from what was sent.
func (r *result) wrong() bool {
	for _, c := range r.Codecs {
		if n, ok := c["mismatches"].(float64); ok && n != 0 {
			return true
		}
	}
	return false
}

// members are the columns' names and what bench calls their numbers. They are of the last codec of the results, or of
// the one that stands before the name, as in "paper wire".
var members = map[string]string{
	"full":      "full_bits_per_frame",
	"payload":   "payload_bits_per_frame",
	"header":    "header_bits_per_frame",
	"wire":      "wire_bits_per_frame",
	"ack":       "ack_bits_per_frame",
	"ack wire":  "ack_wire_bits_per_frame",
	"delivered": "delivered_ratio",
	"intra":     "intra_frames",
	"wrong":     "mismatches",
	"encode ns": "encode_ns_per_frame",
	"decode ns": "decode_ns_per_frame",
	"allocs":    "allocs_per_frame",
}

// fullHeader is what a full frame has around it: 31 bytes of datagram, UDP and IP. The column "saved" compares with that.
const fullHeader = 8 * 31

// fillTable gives a table with a row for each result and the columns that the old one has. What the old one says in
// columns of other names, or about other traces, stays.
func fillTable(old []string, results []result) []string {
	columns := cells(old[0])
	kept := map[string][]string{}
	for _, line := range old[2:] {
		row := cells(line)
		kept[row[0]] = row
	}
	table := old[:2:2]
	for i := range results {
		r := &results[i]
		row := append([]string{r.Trace}, make([]string, len(columns)-1)...)
		for k, name := range columns[1:] {
			if cell, ok := r.cell(name); ok {
				row[k+1] = cell
			} else if was := kept[r.Trace]; k+1 < len(was) {
				row[k+1] = was[k+1]
			}
		}
		delete(kept, r.Trace)
		table = append(table, "| "+strings.Join(row, " | ")+" |")
	}
	for _, line := range old[2:] {
		if _, ok := kept[cells(line)[0]]; ok {
			table = append(table, line)
		}
	}
	return table
}

func cells(line string) []string {
	row := strings.Split(strings.Trim(line, "|"), "|")
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	return row
}

// cell is what a column shows. It says false for a name that is none of bench's.
func (r *result) cell(name string) (string, bool) {
	codec := r.Codecs[len(r.Codecs)-1]
	for _, c := range r.Codecs {
		if rest, ok := strings.CutPrefix(name, fmt.Sprint(c["name"], " ")); ok {
			codec, name = c, rest
		}
	}
	if name == "saved" {
		wire, _ := codec["wire_bits_per_frame"].(float64)
		full, _ := codec["full_bits_per_frame"].(float64)
		return fmt.Sprintf("%.1f %%", 100*(1-wire/(full+fullHeader))), true
	}
	v, ok := codec[members[name]].(float64)
	switch {
	case !ok:
		return "", false
	case name == "delivered":
		return fmt.Sprintf("%.1f %%", 100*v), true
	case name == "intra" || name == "wrong":
		return fmt.Sprintf("%.0f", v), true
	case strings.HasSuffix(name, " ns"):
		return fmt.Sprintf("%.0f", v), true
	}
	return fmt.Sprintf("%.1f", v), true
}
