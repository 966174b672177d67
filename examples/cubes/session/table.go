package session

import (
	"fmt"
	"io"

	"github.com/uplink-rpc/uplink/internal/lab/chart"
)

// WriteTable writes results as a Markdown table.
func WriteTable(w io.Writer, results []*Result) {
	fmt.Fprintln(w, "| budget | mode | rate | kbit/s | error mean | 99 % | largest | turn mean | 99 % | largest | pops/min | updates/s | wait | behind |")
	fmt.Fprintln(w, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	const cm = 100
	for _, r := range results {
		budget := "none"
		if r.Budget > 0 {
			budget = fmt.Sprint(r.Budget)
		}
		p, t := &r.Position, &r.Turn
		fmt.Fprintf(w, "| %s | %s | %d | %.1f | %.2f cm | %.1f cm | %.0f cm | %.2f° | %.1f° | %.0f° | %.0f | %.0f | %.2f s | %.0f ms |\n",
			budget, r.Variant, r.Rate, r.Kbits(), cm*p.Mean(), cm*p.Quantile(0.99), cm*p.Max, t.Mean(), t.Quantile(0.99), t.Max,
			r.PopsPerMinute(), float64(r.Updates)/r.Seconds(), r.LongestWait().Seconds(), r.MeanDelay().Seconds()*1000)
	}
}

// Figure returns a chart of the pops of each variant by budget. There are at least two budgets.
func Figure(results []*Result, budgets []int) *chart.Chart {
	c := &chart.Chart{Title: "Pops a minute by budget: cubes that jump over 5 cm in a frame", XUnit: "kbit/s", YUnit: "a minute"}
	for _, b := range budgets {
		c.X = append(c.X, float64(b))
	}
	for _, f := range Variants() {
		if f.NoBudget {
			continue
		}
		line := chart.Line{Name: f.Name}
		for _, b := range budgets {
			for _, r := range results {
				if r.Variant == f.Name && r.Budget == b {
					line.Y = append(line.Y, r.PopsPerMinute())
				}
			}
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}
