package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
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
		Short: "Say where the bits of recorded play go, and what else could be done",
		Long: `analyze runs recorded play through the codec adaptive and says what each field and component takes, beside the size that
the engine's packing has. Of each component it also tries other predictors, each alone: the residuals that they would
leave, and the bits that these would take in an ideal adaptive code, which learns from what both ends know, as the
codec does, but rounds nothing and costs what it likes. The floor is what a field might take if far more were known
than a receiver can know (docs/codec.md).

With --what-if it runs a grid instead: resolution x redundancy x loss x rate, and gives the bits of each, what is
delivered, and how far the newest frame that the server has is from what was recorded, frame by frame: by resolution
where a frame came, and by its age where it was lost, or not sent. That the frame was under way is left out.

A trace is a .csv or .csv.gz file with NAME.schema.json beside it.`,
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
	f.StringVar(&o.schema, schemaFlag, "", "schema file of all traces, instead of the one beside each")
	o.cfg.Link = simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}
	o.cfg.Link.AddFlags(f)
	f.Float64Var(&o.cfg.AckHz, "ack-hz", 60, "acks a second, at most")
	f.IntVar(&o.cfg.Ring, "ring", rpcdelta.DefaultRing, "frames that either end keeps")
	f.Var((*redundancy)(&o.cfg.Redundancy), "redundancy", "older payloads whose frames ride along in each one: auto, off or a number")
	f.IntVar(&o.cfg.Distance, "distance", 0, "no link: code each frame against the one so many before it")
	f.StringVar(&o.prior, priorFlag, "", "what the codec starts from, a file of uplink train, instead of the built-in prior")
	f.StringVar(&o.html, "html", "", "write a report with charts to this file, instead of a table")
	f.BoolVar(&o.json, "json", false, "print JSON: an object, or an array of them for several traces")
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

// shownInPart is the error of traces whose rows before the damage were shown.
func shownInPart(damaged error) error {
	if damaged == nil {
		return nil
	}
	return hintedError{damaged, "what is shown is of the rows before that"}
}
