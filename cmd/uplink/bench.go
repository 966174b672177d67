package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/internal/lab/table"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

type benchOptions struct {
	cfg    bench.Config
	schema string
	prior  string
	json   bool
	svg    string
}

func newBenchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench TRACE...",
		Short: "Count the bits of recorded play over a simulated link",
		Long: `bench runs recorded play through encoder, simulated link and decoder in virtual time, and counts the bits.
Frames leave at the schema's rate; the server acks on its ticks, where it has something to ack, and its ticks meet the
frames in every phase alike. The link delays by half the round trip each way and loses frames and acks alike.

A trace is a .csv or .csv.gz file with NAME.schema.json beside it. Codecs:

  paper     rle with the paper's own header: two sequence numbers of 32 bits a frame and 32 bits an ack (the paper
            does not give the size of its sequence numbers: it is inferred from its 32-bit ack)
  rle       the paper's scheme under this project's headers
  adaptive  prediction and a range coder that learns; the default of client and server

With --distance there is no link: every frame is coded against the one so many before it.

For the means that a link comes to in the long run, take many links and frames: --seeds 20 --frames 1000000
--warmup 10s. Nothing is timed then.`,
		Example: `  uplink bench portal2_coop_60hz.csv.gz
  uplink bench --rtt 150ms --jitter 10ms --loss 5% --burst 3 portal2_coop_60hz.csv.gz
  uplink bench --distance 6 --codec rle --json portal2_coop_60hz.csv.gz rocketleague_solo_30hz.csv.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.cfg.Prior, err = loadPrior(o.prior); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			results, err := o.run(cmd.Context(), args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if o.svg != "" {
				if err := os.WriteFile(o.svg, []byte(fieldsChart(results).SVG()), 0o644); err != nil {
					return fmt.Errorf("--svg: %w", err)
				}
			}
			if o.json {
				return writeJSON(cmd.OutOrStdout(), results)
			}
			return o.writeTables(cmd.OutOrStdout(), results)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.schema, schemaFlag, "", "schema file of all traces, instead of the one beside each")
	o.cfg.Link = simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}
	o.cfg.Link.AddFlags(f)
	addSuiteFlag(f, &o.cfg.Suite)
	f.Float64Var(&o.cfg.AckHz, "ack-hz", 60, "acks a second, at most")
	f.IntVar(&o.cfg.Ring, "ring", rpcdelta.DefaultRing, "frames that either end keeps")
	f.Var((*redundancy)(&o.cfg.Redundancy), "redundancy", "older payloads whose frames ride along in each one of adaptive: auto, off or a number")
	f.IntVar(&o.cfg.Seeds, "seeds", 1, "links to try, from the seed on; no times are taken then")
	f.IntVar(&o.cfg.Frames, "frames", 0, "frames to count over all seeds, the trace being repeated; 0: the trace once on each")
	f.DurationVar(&o.cfg.Warmup, "warmup", 0, "time at the beginning of each that does not count")
	f.IntVar(&o.cfg.SendEvery, "send-every", 1, "frames in each payload of adaptive: held back until there are so many")
	f.IntVar(&o.cfg.Distance, "distance", 0, "no link: code each frame against the one so many before it")
	f.StringVar(&o.prior, priorFlag, "", "what adaptive starts from, a file of uplink train, instead of the built-in prior")
	f.StringSliceVar(&o.cfg.Schemes, "codec", bench.Schemes(), "what to compare")
	f.BoolVar(&o.cfg.Fields, "fields", false, "show where the bits of adaptive go, by field")
	f.StringVar(&o.svg, "svg", "", "with --fields: draw that to this file")
	f.BoolVar(&o.json, "json", false, eachUsage)
	return cmd
}

func (o *benchOptions) check(cmd *cobra.Command) error {
	if err := checkDistance(cmd, o.cfg.Distance); err != nil {
		return err
	}
	if o.svg != "" && !o.cfg.Fields {
		return errors.New("--svg: want --fields, which it draws")
	}
	if o.cfg.Fields && (o.cfg.Seeds > 1 || o.cfg.Frames > 0 || o.cfg.Warmup > 0) {
		return errors.New("--fields: want the trace once, without --seeds, --frames and --warmup")
	}
	if o.cfg.Fields && !slices.Contains(o.cfg.Schemes, rpcdelta.Adaptive.String()) {
		return errors.New("--fields: want adaptive among --codec")
	}
	return o.cfg.Validate()
}

func (o *benchOptions) run(ctx context.Context, paths []string, stderr io.Writer) ([]*bench.Result, error) {
	p := newProgress(stderr)
	defer p.clear()
	var results []*bench.Result
	for _, path := range paths {
		t, err := loadTrace(path, o.schema)
		if err != nil {
			return nil, err
		}
		cfg := o.cfg
		cfg.Progress = func(scheme string, done float64) { p.show(t.Name+" "+scheme, done) }
		r, err := bench.Run(ctx, t, cfg)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func (o *benchOptions) writeTables(w io.Writer, results []*bench.Result) error {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%s: %d frames at %g Hz, %.0f s; %s\n\n", r.Trace, r.Frames, r.RateHz, float64(r.Frames)/r.RateHz, o.runText())
		table.Write(&b, benchTable(r))
		for _, c := range r.Codecs {
			if len(c.Fields) > 0 {
				b.WriteByte('\n')
				table.Write(&b, fieldsTable(&c))
			}
			if c.Undecodable > 0 {
				fmt.Fprintf(&b, "%s: %d payloads could not be decoded\n", c.Name, c.Undecodable)
			}
		}
		b.WriteByte('\n')
	}
	if len(results) > 1 {
		table.Write(&b, meansTable(results))
		b.WriteByte('\n')
	}
	b.WriteString(benchNotes)
	_, err := io.WriteString(w, b.String())
	return err
}

// runText says what a trace was run through.
func (o *benchOptions) runText() string {
	c := &o.cfg
	text := o.linkText() + "; " + suiteText(o.cfg.Suite)
	if c.Prior != nil {
		text += fmt.Sprintf(", prior %v", c.Prior)
	}
	if c.Frames != 0 {
		text += fmt.Sprintf("; %d frames of it, repeated, in all", c.Frames)
	}
	if c.Warmup != 0 {
		text += fmt.Sprintf("; the first %v of each left out", c.Warmup)
	}
	return text
}

func (o *benchOptions) linkText() string {
	c := &o.cfg
	switch {
	case c.Distance != 0:
		return fmt.Sprintf("no link, each frame against the one %d before it", c.Distance)
	case c.Seeds > 1:
		return fmt.Sprintf("%v, acks at %g Hz, seeds %d to %d", &c.Link, c.AckHz, c.Link.Seed, c.Link.Seed+uint64(c.Seeds)-1)
	}
	return fmt.Sprintf("%v, acks at %g Hz, seed %d", &c.Link, c.AckHz, c.Link.Seed)
}
