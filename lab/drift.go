package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/lab/internal/drift"
)

const driftNotes = `Mean and maximum error of the frames of one second, which ends then; a step is the field's resolution.
article         the article read literally: the difference of two floats is quantized, and the server adds it to the
                float that it restored before
quantize first  values are quantized first, so that differences are exact: the error stays within half a step
`

func newDriftCommand() *cobra.Command {
	var distance int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "drift TRACE...",
		Short: "Show the error that float differences accumulate",
		Long: `drift encodes recorded play with two schemes, each frame against the one this many before it. The scheme of the article,
read literally, subtracts floats and quantizes the difference. This project quantizes first.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if distance < 1 || distance >= rpcdelta.MaxRing {
				return fmt.Errorf("--distance %d: want 1 to %d frames", distance, rpcdelta.MaxRing-1)
			}
			var results []*drift.Result
			for _, path := range args {
				res, err := runDrift(path, distance)
				if err != nil {
					return err
				}
				results = append(results, res)
			}
			return emit(cmd, asJSON, results, func(b *strings.Builder) {
				for _, r := range results {
					fmt.Fprintf(b, "%s: %d frames at %g Hz, each against the one %d before it\n\n", r.Trace, r.Frames, r.RateHz, r.Distance)
					table.Write(b, driftTable(r))
					b.WriteByte('\n')
				}
				b.WriteString(driftNotes)
			})
		},
	}
	cmd.Flags().IntVar(&distance, "distance", 1, "frames between a frame and its baseline")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func runDrift(path string, distance int) (res *drift.Result, err error) {
	schema, err := trace.LoadSchema(trace.SchemaPath(path))
	if err != nil {
		return nil, err
	}
	r, err := trace.Open(path, schema)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	res, err = drift.Run(r, schema, distance)
	if err != nil {
		return nil, err
	}
	res.Trace = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
	return res, nil
}

func driftTable(r *drift.Result) [][]string {
	rows := [][]string{
		{"", "", "", "article", "", "steps", "", "quantize first", "", "steps", ""},
		{"field", "step", "after", "mean", "max", "mean", "max", "mean", "max", "mean", "max"},
	}
	for _, f := range r.Fields {
		for i, s := range f.Spans {
			row := table.Row("||%.3g s", s.Until)
			if i == 0 {
				row[0], row[1] = f.Name, fmt.Sprintf("%.4g", f.Step)
			}
			for _, e := range []drift.Error{s.Article, s.QuantizeFirst} {
				row = append(row, table.Row("%.4g|%.4g|%.2f|%.2f", e.Mean, e.Max, e.Mean/f.Step, e.Max/f.Step)...)
			}
			rows = append(rows, row)
		}
	}
	return rows
}
