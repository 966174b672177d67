package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/trace"
)

type trainOptions struct {
	traceFlags
	out                          string
	generic, leaveOneOut, halves bool
	judge                        judge
}

func newTrainCommand() *cobra.Command {
	var o trainOptions
	c := &cobra.Command{
		Use:   "train TRACE...",
		Short: "Train a prior on recorded play, or evaluate one",
		Long: `train writes a prior for the adaptive codec, from recorded play: the distribution of residuals, the initial models of
each kind of field, and those of the traces' own fields. Use it at client and server (--prior of bench, ds and replay;
Config.Prior and Config.Tuning.Priors in programs).

--leave-one-out trains on all traces but one and encodes that one, for each; --halves trains on the first half of each
trace and encodes the second. They write no file.`,
		Example: `  uplink train monday.csv.gz tuesday.csv.gz -o mygame.prior
  uplink train --leave-one-out --json monday.csv.gz tuesday.csv.gz wednesday.csv.gz
  uplink train --generic testdata/traces/*.csv.gz -o internal/rpcdelta/adaptive/generic.prior`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, len(args)); err != nil {
				return usageError{err}
			}
			return o.run(cmd, args)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.out, "output", "o", "", "file for the prior")
	o.add(f, "print the results as JSON")
	f.BoolVar(&o.generic, "generic", false, "train from scratch and without models of single fields, as for the built-in prior")
	f.BoolVar(&o.leaveOneOut, "leave-one-out", false, "evaluate a prior trained on the other traces, for each trace")
	f.BoolVar(&o.halves, "halves", false, "evaluate a prior trained on the first half of each trace, on the second")
	f.IntVar(&o.judge.distance, "distance", 0, "encode each frame against the one this many before it, instead of over a link with 100 ms RTT")
	return c
}

func (o *trainOptions) check(cmd *cobra.Command, traces int) error {
	judging := o.leaveOneOut || o.halves
	switch {
	case o.leaveOneOut && o.halves:
		return errors.New("--leave-one-out and --halves: choose one")
	case judging && o.out != "":
		return errors.New("--output: nothing is written with --leave-one-out or --halves; leave one of them out")
	case judging && o.generic:
		return errors.New("--generic: --leave-one-out and --halves include it; leave it out")
	case o.leaveOneOut && traces < 2:
		return errors.New("--leave-one-out: want at least two traces")
	case !judging && o.out == "":
		return errors.New("--output: name the file for the prior")
	case !judging && cmd.Flags().Changed("distance"):
		return errors.New("--distance: it needs --leave-one-out or --halves")
	case !judging:
		return nil
	}
	return o.judge.check(cmd.Flags().Changed("distance"))
}

func (o *trainOptions) run(cmd *cobra.Command, paths []string) error {
	ctx, stdout, p := cmd.Context(), cmd.OutOrStdout(), newProgress(cmd.ErrOrStderr())
	defer p.clear()
	traces, err := loadTraces(paths, o.schema)
	if err != nil {
		return err
	}
	o.judge.progress, o.judge.json = p.show, o.json
	switch {
	case o.leaveOneOut:
		return o.judge.compare(ctx, &leaveOneOut, traces, stdout)
	case o.halves:
		return o.judge.compare(ctx, &halves, traces, stdout)
	}
	prior, err := prior.Train(ctx, recordings(traces...), prior.TrainConfig{
		FromScratch: o.generic, Generic: o.generic, Progress: func(done float64) { p.show("training", done) },
	})
	if err != nil {
		return err
	}
	p.clear()
	file := prior.Append(nil)
	if err := writeFile("output", o.out, file); err != nil {
		return err
	}
	made := &trained{File: o.out, Prior: prior.String(), Fields: prior.Fields(), Bytes: len(file)}
	for _, t := range traces {
		s := t.Schema
		made.Traces = append(made.Traces, material{t.Name, s.RPC(), len(t.Frames), len(s.Fields()), s.RateHz()})
		made.Frames += len(t.Frames)
	}
	return emit(stdout, o.json, []*trained{made}, made.write)
}

func recordings(traces ...*trace.Trace) (all []prior.Recording) {
	for _, t := range traces {
		all = append(all, prior.Recording{Schema: t.Schema, Frames: t.Frames})
	}
	return all
}

// trained describes a trained prior and its traces.
type trained struct {
	File   string     `json:"file"`
	Prior  string     `json:"prior"` // hash of the prior
	Fields int        `json:"fields"`
	Bytes  int        `json:"bytes"`
	Frames int        `json:"frames"`
	Traces []material `json:"traces"`
}

// material is a trace for training.
type material struct {
	Trace  string  `json:"trace"`
	RPC    string  `json:"rpc"`
	Frames int     `json:"frames"`
	Fields int     `json:"fields"`
	RateHz float64 `json:"rate_hz"`
}

func (m *trained) write(b *strings.Builder) {
	for _, t := range m.Traces {
		fmt.Fprintf(b, "%s: %d frames of %s, %d fields at %g Hz\n", t.Trace, t.Frames, t.RPC, t.Fields, t.RateHz)
	}
	fmt.Fprintf(b, "%s: prior %s, from %d frames; %d fields, %d bytes\n", m.File, m.Prior, m.Frames, m.Fields, m.Bytes)
}
