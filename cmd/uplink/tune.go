package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/tune"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/table"
)

type tuneOptions struct {
	traceFlags
	cfg    tune.Config
	bounds []string
	out    string
}

func newTuneCommand() *cobra.Command {
	var o tuneOptions
	cmd := &cobra.Command{
		Use:   "tune TRACE... --error FIELD=BOUND,...",
		Short: "Propose a schema for an error bound and a link",
		Long: `tune proposes, for recorded play: resolutions and bits that keep errors within bounds; derivatives, that is, which field
is the rate of change of which, found by correlation and kept if it saves bits; redundancy for a delivery rate; and the
smallest ring that costs almost nothing. It prints the saving of each step and the Go struct, and writes the schema file.

A bound is in the unit of the field's columns. It may have a unit if the columns' names end in one, as in pos_x_cm and
vel_x_mps, or if --unit names it. For vectors it is a distance; for angles, quats and unitvecs it is in degrees.`,
		Example: `  uplink tune mygame.csv.gz --error Location=1cm,Rotation=0.1deg
  uplink tune monday.csv.gz tuesday.csv.gz --error Location=0.5 --rtt 120ms --loss 5% -o mygame.schema.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: checked(o.check, o.run),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.bounds, "error", nil, "maximum errors of fields: Location=1cm,Rotation=0.1deg")
	f.StringToStringVar(&o.cfg.Units, "unit", nil, "units of fields' columns, if their names do not contain them: Location=cm")
	o.add(f, "print JSON")
	o.cfg.Link = simlink.Config{RTT: 100 * time.Millisecond, Loss: 0.02, Burst: 1, Seed: 1}
	o.cfg.Link.AddFlags(f)
	f.Float64Var(&o.cfg.AckHz, "ack-hz", 0, ackHzUsage)
	f.Float64Var(&o.cfg.Delivery, "delivery", rpcdelta.DefaultDelivery, "share of frames to deliver in time")
	f.StringVarP(&o.out, "output", "o", "", "file for the schema")
	return cmd
}

func (o *tuneOptions) check() error {
	if len(o.bounds) == 0 {
		return errors.New("--error: want maximum errors of fields, such as Location=1cm")
	}
	seen := map[string]bool{}
	for _, text := range o.bounds {
		b, err := tune.ParseBound(text)
		if err != nil {
			return fmt.Errorf("--error %w", err)
		}
		if seen[b.Field] {
			return fmt.Errorf("--error: %s is named twice", b.Field)
		}
		seen[b.Field] = true
		o.cfg.Bounds = append(o.cfg.Bounds, b)
	}
	return o.cfg.Validate()
}

// tuned is the output as JSON.
type tuned struct {
	*tune.Result
	Schema json.RawMessage `json:"schema"`
	Go     string          `json:"go"`
}

func (o *tuneOptions) run(cmd *cobra.Command, paths []string) error {
	p := newProgress(cmd.ErrOrStderr())
	defer p.clear()
	var recordings []*analysis.Recording
	for _, path := range paths {
		r, err := loadRecording(path, o.schema)
		if err != nil {
			return err
		}
		recordings = append(recordings, r)
	}
	cfg := o.cfg
	cfg.Progress = p.show
	result, err := tune.Run(cmd.Context(), recordings, cfg)
	if err != nil {
		return err
	}
	p.clear()
	file, err := result.Schema.AppendJSON(nil)
	if err != nil {
		return err
	}
	if err := writeFile("output", o.out, append(file, '\n')); err != nil {
		return err
	}
	declaration, err := tune.GoStruct(result.Schema)
	if err != nil {
		return err
	}
	return emit(cmd.OutOrStdout(), o.json, []tuned{{result, file, declaration}}, func(b *strings.Builder) {
		o.write(b, recordings, result, declaration)
	})
}

func (o *tuneOptions) write(b *strings.Builder, recordings []*analysis.Recording, r *tune.Result, declaration string) {
	for _, rec := range recordings {
		fmt.Fprintf(b, "%s: %d frames at %g Hz\n", rec.Name, len(rec.Frames), rec.Schema.RateHz())
	}
	fmt.Fprintf(b, "%v\n\n", &o.cfg.Config)
	rows := [][]string{{"step", "bits", "saved", "kbit/s", "delivered"}}
	for i, s := range r.Steps {
		saved := ""
		if i > 0 {
			saved = fmt.Sprintf("%.1f", r.Steps[i-1].Bits-s.Bits)
		}
		rows = append(rows, table.Row("%s|%.1f|%s|%.1f|%.2f %%", s.What, s.Bits, saved, s.Kbits, 100*s.Delivered))
	}
	table.Write(b, rows)
	b.WriteByte('\n')
	rows = [][]string{{"error", "bound", "max seen"}}
	for _, k := range r.Kept {
		rows = append(rows, table.Row("%s|%.4g|%.4g", k.Field, k.Bound, k.Measured))
	}
	table.Write(b, rows)
	if last := r.Steps[len(r.Steps)-1]; last.Delivered < o.cfg.Delivery {
		fmt.Fprintf(b, "\nNo redundancy delivers %g %% on this link; the maximum is %.2f %%.\n", 100*o.cfg.Delivery, 100*last.Delivered)
	}
	fmt.Fprintf(b, "\nRedundancy %s, ring %d (client.Config, ds.Config).\n\n%s", redundancyText(r.Redundancy), r.Ring, declaration)
}
