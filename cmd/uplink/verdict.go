package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/uplink-rpc/uplink/internal/lab/table"
)

// verdict is what candidates came to on traces.
type verdict struct {
	title, notes string
	all          []candidate
	base         int // the candidate against which the last one gains
	rows         []judged
}

// judged is what the candidates came to on one trace.
type judged struct {
	name   string
	frames string
	bits   []bits
}

// bits a frame of a whole trace and of its beginning, headers included.
type bits struct{ whole, first float64 }

func (b bits) wholeBits() float64 { return b.whole }
func (b bits) firstBits() float64 { return b.first }

// write lays the results out, and their geometric means.
func (v *verdict) write(w io.Writer, how string) error {
	head, names := []string{"", "", "whole"}, []string{"", "frames"}
	for range v.all {
		head = append(head, "")
	}
	head = append(head, fmt.Sprintf("first %.0f s", beginning.Seconds()))
	for range v.all {
		head = append(head, "")
	}
	for range 2 {
		for _, c := range v.all {
			names = append(names, c.name)
		}
		names = append(names, "gain")
	}
	rows := [][]string{head, names}
	for _, r := range append(v.rows, v.mean()) {
		rows = append(rows, v.cells(&r))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: bits a frame, payload and header; %s\n\n", v.title, how)
	table.Write(&b, rows)
	b.WriteString("\n" + v.notes)
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *verdict) cells(r *judged) []string {
	row := []string{r.name, r.frames}
	for _, of := range []func(bits) float64{bits.wholeBits, bits.firstBits} {
		for _, b := range r.bits {
			row = append(row, fmt.Sprintf("%.1f", of(b)))
		}
		gain := 1 - of(r.bits[len(r.bits)-1])/of(r.bits[v.base])
		row = append(row, fmt.Sprintf("%.1f %%", 100*gain))
	}
	return row
}

// mean is the geometric one of all traces.
func (v *verdict) mean() judged {
	out := judged{name: "geometric mean", bits: make([]bits, len(v.all))}
	for i := range out.bits {
		whole, first := 0.0, 0.0
		for _, r := range v.rows {
			whole += math.Log(r.bits[i].whole)
			first += math.Log(r.bits[i].first)
		}
		n := float64(len(v.rows))
		out.bits[i] = bits{math.Exp(whole / n), math.Exp(first / n)}
	}
	return out
}

// results are the same for JSON.
type results struct {
	Link       string        `json:"link"`
	Candidates []string      `json:"candidates"`
	Traces     []traceResult `json:"traces"`
	Mean       traceResult   `json:"geometric_mean"`
}

// traceResult has bits a frame, payload and header, of each candidate.
type traceResult struct {
	Trace string             `json:"trace,omitempty"`
	Whole map[string]float64 `json:"bits"`
	First map[string]float64 `json:"bits_first_10s"`
}

func (v *verdict) results(how string) *results {
	out := &results{Link: how}
	for _, c := range v.all {
		out.Candidates = append(out.Candidates, c.name)
	}
	of := func(r judged) traceResult {
		t := traceResult{r.name, map[string]float64{}, map[string]float64{}}
		for i, name := range out.Candidates {
			t.Whole[name], t.First[name] = r.bits[i].whole, r.bits[i].first
		}
		return t
	}
	for _, r := range v.rows {
		out.Traces = append(out.Traces, of(r))
	}
	out.Mean = of(v.mean())
	out.Mean.Trace = ""
	return out
}
