package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/trace"
)

type analyzeOptions struct {
	traceFlags
	cfg         bench.Config
	prior, html string
	whatIf      bool
	grid        gridFlags
}

func newAnalyzeCommand() *cobra.Command {
	o := analyzeOptions{cfg: bench.Config{Schemes: []string{rpcdelta.Adaptive.String()}, Untimed: true}}
	cmd := &cobra.Command{
		Use:   "analyze TRACE...",
		Short: "Show where the bits of recorded play go, by field and predictor",
		Long: `analyze encodes recorded play with the adaptive codec. It prints the bits of each field and component, and their size as
an engine packs them. For each component it also tries other predictors, one at a time: their residuals, and the bits
of these in an ideal adaptive code, without rounding and without a time limit. The floor is an estimate of what a field
would need if the codec knew more than a receiver can know (docs/design/codec.md), and at most what the codec needs.

With --what-if it runs a grid instead: resolution x redundancy x loss x rate. For each cell it prints bits, delivery,
and the error of the newest frame at the server against the recording. The error contains the resolution, and the age
of the newest frame if frames were lost or not sent. It does not contain the delay of the path.

A trace is a .csv or .csv.gz file with its schema in NAME.schema.json, or a capture: the longest play in it.`,
		Example: `  uplink analyze portal2_coop_60hz.csv.gz
  uplink analyze --rtt 150ms --loss 5% --html report.html monday.csv.gz tuesday.csv.gz
  uplink analyze --distance 6 --json portal2_coop_60hz.csv.gz
  uplink analyze --what-if --losses 0,10% --resolutions 1,10 --rates 60,20 --errors Location portal2_coop_60hz.csv.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.cfg.Prior, err = loadPrior(o.prior); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			if o.whatIf {
				return o.runGrid(cmd, args)
			}
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	o.add(f, eachUsage)
	addRun(f, &o.cfg, &o.prior, "payload")
	f.StringVar(&o.html, "html", "", "write a report with charts to this file, instead of a table")
	f.BoolVar(&o.whatIf, "what-if", false, "run a grid of resolutions, redundancies, losses and rates")
	o.grid.addFlags(f)
	return cmd
}

func (o *analyzeOptions) check(cmd *cobra.Command) error {
	if err := checkDistance(cmd, o.cfg.Distance); err != nil {
		return err
	}
	if o.json && o.html != "" {
		return errors.New("--json and --html: choose one")
	}
	if err := o.grid.check(cmd, o); err != nil {
		return err
	}
	return o.cfg.Validate()
}

// partly returns a load function that accepts damaged traces and adds their errors to damaged.
func partly[T any](
	load func(path, schema string) (*T, error), schema string, damaged *error,
) func(path string) (*T, error) {
	return func(path string) (*T, error) {
		t, err := load(path, schema)
		if t == nil {
			return nil, err
		}
		*damaged = errors.Join(*damaged, err)
		return t, nil
	}
}

func (o *analyzeOptions) run(cmd *cobra.Command, paths []string) error {
	var damaged error
	load := partly(loadTrace, o.schema, &damaged)
	reports, err := measureAll(cmd, paths, load, func(t *trace.Trace, p *progress) (*analysis.Report, error) {
		cfg := o.cfg
		cfg.Progress = p.show
		return analysis.Run(cmd.Context(), t, cfg)
	})
	switch {
	case err != nil:
	case o.html != "":
		var page []byte
		if page, err = analysis.HTML(reports); err == nil {
			err = writeFile("html", o.html, page)
		}
	default:
		err = emit(cmd.OutOrStdout(), o.json, reports, func(b *strings.Builder) { b.WriteString(analysis.Text(reports)) })
	}
	if err != nil {
		return err
	}
	return shownInPart(damaged)
}

// shownInPart adds a hint to the error of damaged traces. The rows before the damage were used.
func shownInPart(damaged error) error {
	if damaged == nil {
		return nil
	}
	return hintedError{damaged, "only the rows before the damage were used"}
}

// gridFlags are the flags of the axes of the grid.
type gridFlags struct {
	grid                           analysis.Grid
	redundancies, losses, errorsOf []string
}

// fieldsShown is the number of fields whose errors the table shows by default.
const fieldsShown = 3

func (g *gridFlags) addFlags(f *pflag.FlagSet) {
	f.Float64SliceVar(&g.grid.Resolutions, "resolutions", []float64{1, 2, 4, 8}, "with --what-if: factors on the resolution of all fields")
	f.Float64SliceVar(&g.grid.Rates, "rates", nil, "with --what-if: calls per second, divisors of the trace's rate (default its rate and half of it)")
	f.StringSliceVar(&g.redundancies, "redundancies", []string{"off", "auto"}, "with --what-if: values of --redundancy")
	f.StringSliceVar(&g.losses, "losses", []string{"0", "5%", "10%"}, "with --what-if: packet loss, in each direction")
	f.StringSliceVar(&g.errorsOf, "errors", nil, fmt.Sprintf("with --what-if: fields whose errors the table shows (default the first %d)", fieldsShown))
}

func (g *gridFlags) check(cmd *cobra.Command, o *analyzeOptions) error {
	if !o.whatIf {
		for _, name := range []string{"resolutions", "rates", "redundancies", "losses", "errors"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s: it needs --what-if", name)
			}
		}
		return nil
	}
	for name, instead := range map[string]string{"loss": "losses", "redundancy": "redundancies"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: with --what-if it is --%s", name, instead)
		}
	}
	switch {
	case o.cfg.Distance != 0:
		return errors.New("--distance: --what-if needs a link; leave one of them out")
	case o.html != "":
		return errors.New("--html: --what-if writes a table or --json")
	}
	for _, text := range g.redundancies {
		var r redundancy
		if err := r.Set(text); err != nil {
			return fmt.Errorf("--redundancies %q: %w", text, err)
		}
		g.grid.Redundancies = append(g.grid.Redundancies, int(r))
	}
	for _, text := range g.losses {
		share, err := simlink.ParseShare(text)
		if err != nil {
			return fmt.Errorf("--losses %q: %w", text, err)
		}
		g.grid.Losses = append(g.grid.Losses, share)
	}
	return g.grid.Validate()
}

func (o *analyzeOptions) runGrid(cmd *cobra.Command, paths []string) error {
	var damaged error
	var tables strings.Builder
	load := partly(loadRecording, o.schema, &damaged)
	outcomes, err := measureAll(cmd, paths, load, func(r *analysis.Recording, p *progress) (*analysis.Outcome, error) {
		shown := o.grid.errorsOf
		for _, name := range shown {
			if err := r.CheckField(name); err != nil {
				return nil, err
			}
		}
		if len(shown) == 0 {
			shown = r.Fields()
			shown = shown[:min(len(shown), fieldsShown)]
		}
		cfg := o.cfg
		cfg.Progress = p.show
		out, err := analysis.WhatIf(cmd.Context(), r, o.grid.grid, cfg)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&tables, "%s: %d frames at %g Hz; RTT %v, jitter %v, acks at %g Hz\n\n", r.Name, out.Frames, out.RateHz, o.cfg.Link.RTT, o.cfg.Link.Jitter, o.cfg.AckHz)
		table.Write(&tables, out.Text(shown, redundancyText))
		tables.WriteByte('\n')
		return out, nil
	})
	if err == nil {
		tables.WriteString(gridNotes)
		err = emit(cmd.OutOrStdout(), o.json, outcomes, func(b *strings.Builder) { b.WriteString(tables.String()) })
	}
	if err != nil {
		return err
	}
	return shownInPart(damaged)
}

const gridNotes = `bits   per frame sent, payload and header; kbit/s: the client's datagrams with IP and UDP.
errors of the newest frame at the server at the time of each recorded row, against the recording: vectors and scalars
       in the unit of their columns, angles, rotations and directions in degrees.
`

// redundancyText returns a redundancy as a value of its flag.
func redundancyText(n int) string { return (*redundancy)(&n).String() }
