package main

import (
	"os"
	"path/filepath"

	"github.com/uplink-rpc/uplink/bench/internal/compare"
	"github.com/uplink-rpc/uplink/internal/lab/chart"
)

// draw writes the charts: bench-bits.svg and bench-ns.svg.
func draw(folder string, s *compare.Summary) error {
	if err := write(folder, "bench-bits.svg", bitsChart(s)); err != nil {
		return err
	}
	return write(folder, "bench-ns.svg", nsChart(s))
}

func write(folder, name, svg string) error {
	return os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o644)
}

func bitsChart(s *compare.Summary) string {
	c := chart.Chart{Title: "Bits a delivered frame against loss, geometric mean of the traces", XUnit: "%", YUnit: "bits"}
	for _, loss := range s.Losses {
		c.X = append(c.X, 100*loss)
	}
	for _, m := range s.Means {
		c.Lines = append(c.Lines, chart.Line{Name: m.Name, Y: m.Bits})
	}
	return c.SVG()
}

func nsChart(s *compare.Summary) string {
	c := chart.Bars{Title: "Nanoseconds a frame, geometric mean of the traces", Unit: "ns", Names: []string{"encode", "decode"}}
	for _, m := range s.Means {
		c.Rows = append(c.Rows, chart.Row{Name: m.Name, Values: []float64{m.EncodeNs, m.DecodeNs}})
	}
	return c.SVG()
}
