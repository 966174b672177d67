package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/internal/lab/table"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

type analyzeOptions struct {
	cfg    analysis.Config
	schema string
	prior  string
	html   string
	json   bool

	whatIf bool
	grid   gridFlags
}

func newAnalyzeCommand() *cobra.Command {
	var o analyzeOptions
	cmd := &cobra.Command{
		Use:   "analyze TRACE...",
		Short: "Show where the bits of recorded play go, by field and predictor",
		Long: `analyze encodes recorded play with the adaptive codec. It prints the bits of each field and component, and their size as
an engine packs them. For each component it also tries other predictors, one at a time: their residuals, and the bits
of these in an ideal adaptive code, without rounding and without a time limit. The floor is an estimate of what a field
would need if the codec knew more than a receiver can know (docs/codec.md).

With --what-if it runs a grid instead: resolution x redundancy x loss x rate. For each cell it prints bits, delivery,
and the error of the newest frame at the server against the recording. The error contains the resolution, and the age
of the newest frame if frames were lost or not sent. It does not contain the delay of the path.

A trace is a .csv or .csv.gz file with its schema in NAME.schema.json.`,
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
				return o.runGrid(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.schema, schemaFlag, "", "schema file for all traces, instead of NAME.schema.json of each")
	o.cfg.Link = simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}
	o.cfg.Link.AddFlags(f)
	f.Float64Var(&o.cfg.AckHz, "ack-hz", 60, "maximum acks per second")
	f.IntVar(&o.cfg.Ring, "ring", rpcdelta.DefaultRing, "ring size, in frames")
	f.Var((*redundancy)(&o.cfg.Redundancy), "redundancy", "redundant frames in each payload: auto, off or a number")
	f.IntVar(&o.cfg.Distance, "distance", 0, "no link: encode each frame against the one this many before it")
	f.StringVar(&o.prior, priorFlag, "", "prior from uplink train, instead of the built-in one")
	f.StringVar(&o.html, "html", "", "write a report with charts to this file, instead of a table")
	f.BoolVar(&o.json, "json", false, "print JSON: an object, or an array for several traces")
	f.BoolVar(&o.whatIf, "what-if", false, "run a grid of resolutions, redundancies, losses and rates")
	o.grid.add(f)
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

func (o *analyzeOptions) run(ctx context.Context, paths []string, stdout, stderr io.Writer) error {
	p := newProgress(stderr)
	defer p.clear()
	var reports []*analysis.Report
	var damaged error
	for _, path := range paths {
		t, err := loadTrace(path, o.schema)
		if t == nil {
			return err
		}
		damaged = errors.Join(damaged, err)
		cfg := o.cfg
		cfg.Progress = p.show
		r, err := analysis.Run(ctx, t, cfg)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	p.clear()
	if err := o.write(stdout, reports); err != nil {
		return err
	}
	return shownInPart(damaged)
}

func (o *analyzeOptions) write(w io.Writer, reports []*analysis.Report) error {
	switch {
	case o.html != "":
		page, err := analysis.HTML(reports)
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.html, page, 0o644); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
		return nil
	case o.json:
		return writeJSON(w, reports)
	}
	_, err := io.WriteString(w, analysis.Text(reports))
	return err
}

// shownInPart adds a hint to the error of damaged traces, whose rows before the damage were used.
func shownInPart(damaged error) error {
	if damaged == nil {
		return nil
	}
	return hintedError{damaged, "only the rows before the damage were used"}
}

// gridFlags are the flags of the axes of the grid.
type gridFlags struct {
	resolutions, rates             []float64
	redundancies, losses, errorsOf []string
	grid                           analysis.Grid
}

// gridOnly are the flags that need --what-if.
var gridOnly = []string{"resolutions", "rates", "redundancies", "losses", "errors"}

// fieldsShown is the number of fields whose errors the table shows by default.
const fieldsShown = 3

func (g *gridFlags) add(f *pflag.FlagSet) {
	f.Float64SliceVar(&g.resolutions, "resolutions", []float64{1, 2, 4, 8}, "with --what-if: factors on the resolution of all fields")
	f.Float64SliceVar(&g.rates, "rates", nil, "with --what-if: calls per second, divisors of the trace's rate (default its rate and half of it)")
	f.StringSliceVar(&g.redundancies, "redundancies", []string{"off", "auto"}, "with --what-if: values of --redundancy")
	f.StringSliceVar(&g.losses, "losses", []string{"0", "5%", "10%"}, "with --what-if: packet loss, in each direction")
	f.StringSliceVar(&g.errorsOf, "errors", nil, fmt.Sprintf("with --what-if: fields whose errors the table shows (default the first %d)", fieldsShown))
}

func (g *gridFlags) check(cmd *cobra.Command, o *analyzeOptions) error {
	if !o.whatIf {
		for _, name := range gridOnly {
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
	g.grid = analysis.Grid{Resolutions: g.resolutions, Rates: g.rates}
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

func (o *analyzeOptions) runGrid(ctx context.Context, paths []string, stdout, stderr io.Writer) error {
	p := newProgress(stderr)
	defer p.clear()
	var outcomes []*analysis.Outcome
	var b strings.Builder
	var damaged error
	for _, path := range paths {
		r, err := loadRecording(path, o.schema)
		if r == nil {
			return err
		}
		damaged = errors.Join(damaged, err)
		shown := o.grid.errorsOf
		for _, name := range shown {
			if err := r.CheckField(name); err != nil {
				return err
			}
		}
		if len(shown) == 0 {
			shown = r.Fields()
			shown = shown[:min(len(shown), fieldsShown)]
		}
		cfg := o.cfg
		cfg.Progress = p.show
		out, err := analysis.WhatIf(ctx, r, o.grid.grid, cfg)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, out)
		fmt.Fprintf(&b, "%s: %d frames at %g Hz; RTT %v, jitter %v, acks at %g Hz\n\n", r.Name, out.Frames, out.RateHz, o.cfg.Link.RTT, o.cfg.Link.Jitter, o.cfg.AckHz)
		table.Write(&b, out.Text(shown, redundancyText))
		b.WriteByte('\n')
	}
	p.clear()
	b.WriteString(gridNotes)
	write := func() error {
		if o.json {
			return writeJSON(stdout, outcomes)
		}
		_, err := io.WriteString(stdout, b.String())
		return err
	}
	if err := write(); err != nil {
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
