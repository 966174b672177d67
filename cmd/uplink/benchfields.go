package main

import (
	"fmt"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/internal/lab/chart"
)

// fieldsTable lays out what each field takes.
func fieldsTable(c *bench.Counts) [][]string {
	rows := [][]string{{"field of " + c.Name, "full", "payload", "share"}}
	var full, sum float64
	for _, f := range c.Fields {
		full, sum = full+f.FullBits, sum+f.PayloadBits
	}
	line := func(name string, full, bits float64) []string {
		return []string{name, fmt.Sprintf("%.1f", full), fmt.Sprintf("%.1f", bits), fmt.Sprintf("%.1f %%", 100*bits/max(c.PayloadBits, 1e-9))}
	}
	for _, f := range c.Fields {
		rows = append(rows, line(f.Name, f.FullBits, f.PayloadBits))
	}
	return append(rows, line("whole bytes, frame count", 0, c.PayloadBits-sum), line("all", full, c.PayloadBits))
}

// fieldsChart draws it for all traces.
func fieldsChart(results []*bench.Result) *chart.Stacks {
	c := &chart.Stacks{Title: "Where the bits of a frame go: packed by the engine, and in payloads of adaptive", Unit: "bits"}
	for _, r := range results {
		for _, s := range r.Codecs {
			if len(s.Fields) == 0 {
				continue
			}
			full, coded := chart.Stack{Name: r.Trace}, chart.Stack{Name: s.Name}
			sum := 0.0
			for _, f := range s.Fields {
				full.Parts = append(full.Parts, chart.Part{Name: f.Name, Value: f.FullBits})
				coded.Parts = append(coded.Parts, chart.Part{Name: f.Name, Value: f.PayloadBits})
				sum += f.PayloadBits
			}
			coded.Parts = append(coded.Parts, chart.Part{Name: "whole bytes", Value: max(0, s.PayloadBits-sum)}, chart.Part{Name: "header", Value: s.HeaderBits})
			c.Rows = append(c.Rows, full, coded)
		}
	}
	return c
}
