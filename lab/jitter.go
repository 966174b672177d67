package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/uplinktest/pacing"
	"github.com/uplink-rpc/uplink/jitter"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

type jitterOptions struct {
	minutes int
	runs    int
}

func newJitterCommand() *cobra.Command {
	var o jitterOptions
	cmd := &cobra.Command{
		Use:   "jitter",
		Short: "Measure the slack of a jitter buffer and its missing ticks",
		Long: `jitter sends a client's calls over simulated links to a jitter buffer, in virtual time, and prints their slack and the
number of missing ticks; see docs/jitter.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.minutes < 1 || o.runs < 1 {
				return fmt.Errorf("--minutes %d --runs %d: want at least 1 of each", o.minutes, o.runs)
			}
			return playJitter(cmd.OutOrStdout(), o)
		},
	}
	cmd.Flags().IntVar(&o.minutes, "minutes", 5, "minutes per run")
	cmd.Flags().IntVar(&o.runs, "runs", 8, "number of runs")
	return cmd
}

const (
	ms = time.Millisecond
	// jitterHz is the number of ticks and calls per second.
	jitterHz = 60
)

// jitterLinks are the simulated links: 50 ms one way, plus jitter.
var jitterLinks = []struct {
	name   string
	jitter time.Duration
	loss   float64
	older  int
	change time.Duration // added delay of one direction in the second half
}{
	{name: "cable", jitter: 2 * ms, loss: 0.001, older: 1},
	{name: "Wi-Fi", jitter: 5 * ms, loss: 0.01, older: 1},
	{name: "bad Wi-Fi", jitter: 10 * ms, loss: 0.05, older: 2},
	{name: "mobile", jitter: 20 * ms, loss: 0.05, older: 2},
	{name: "Wi-Fi, 50 ms more after half", jitter: 5 * ms, loss: 0.01, older: 1, change: 100 * ms},
}

// jitterSetups are the configurations of buffer and client.
var jitterSetups = []struct {
	name  string
	depth time.Duration
	alone bool
}{
	{name: "learned, followed"},
	{name: "33 ms, followed", depth: 33 * ms},
	{name: "learned, not followed", alone: true},
}

// clockDrifts are the relative differences of the client's clock.
var clockDrifts = []float64{-200e-6, 200e-6}

func playJitter(out io.Writer, o jitterOptions) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "link\tbuffer\tclock ppm\tslack ms\ttarget ms\toff ms\tmissing/min\tlate/min\tresyncs/min\tclock %")
	for _, link := range jitterLinks {
		for _, way := range jitterSetups {
			for _, drift := range clockDrifts {
				sum, err := playLink(o, pacing.Options{
					Up:    simnet.Config{Delay: 50 * ms, Jitter: link.jitter, Loss: link.loss},
					Down:  simnet.Config{Delay: 50 * ms, Jitter: link.jitter, Loss: link.loss},
					Older: link.older, Delay: link.change, Drift: drift, NoPace: way.alone, Buffer: jitter.Config{Depth: way.depth},
				})
				if err != nil {
					return err
				}
				minutes := float64(sum.Ticks) / jitterHz / 60
				fmt.Fprintf(w, "%s\t%s\t%+.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%+.2f to %+.2f\n", link.name, way.name, 1e6*drift,
					inMs(sum.Slack), inMs(sum.Target), inMs(sum.Off), float64(sum.Stats.Missing)/minutes, float64(sum.Stats.Late)/minutes,
					float64(sum.Stats.Resyncs)/minutes, 100*(sum.Slowest-1), 100*(sum.Fastest-1))
			}
		}
	}
	return w.Flush()
}

func inMs(d time.Duration) float64 { return float64(d) / float64(ms) }

// playLink returns the mean of all runs, the sums of counters, and the extremes of the clock rate.
func playLink(o jitterOptions, p pacing.Options) (sum pacing.Result, err error) {
	p.Hz, p.Duration, p.Settle, p.Ragged = jitterHz, time.Duration(o.minutes)*time.Minute, 10*time.Second, ms
	if p.Delay != 0 {
		p.Change = p.Duration / 2
	}
	for i := range o.runs {
		p.Seed = uint64(i) + 1
		r, err := pacing.Run(p)
		if err != nil {
			return sum, err
		}
		sum.Ticks += r.Ticks
		sum.Slack += r.Slack / time.Duration(o.runs)
		sum.Target += r.Target / time.Duration(o.runs)
		sum.Off += r.Off / time.Duration(o.runs)
		sum.Stats.Missing += r.Stats.Missing
		sum.Stats.Late += r.Stats.Late
		sum.Stats.Resyncs += r.Stats.Resyncs
		if i == 0 {
			sum.Slowest, sum.Fastest = r.Slowest, r.Fastest
		}
		sum.Slowest, sum.Fastest = min(sum.Slowest, r.Slowest), max(sum.Fastest, r.Fastest)
	}
	return sum, nil
}
