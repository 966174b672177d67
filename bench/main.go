// Command bench compares this project's codecs with what users would pick instead, on the frames of recorded play:
//
//	cd bench && go run . [--json] [--out DIR] [TRACE...]
//
// It prints tables, and draws bits a delivered frame against loss and nanoseconds a frame as SVG files. It needs no
// arguments: the traces are those of the repository, and the files go to its docs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/uplink-rpc/uplink/bench/internal/compare"
	"github.com/uplink-rpc/uplink/trace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command's flags.
type options struct {
	json bool
	out  string
	cfg  compare.Config
}

// ownTraces are the traces of the repository, seen from this folder.
const ownTraces = "../testdata/traces/*.csv.gz"

// timedLoss is the loss at which times are measured: some, so that adaptive sends older frames along.
const timedLoss = 0.05

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{cfg: compare.Config{TimedLoss: timedLoss}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.out, "out", "../docs", "folder for the SVG files; empty: draw none")
	f.IntVar(&o.cfg.Frames, "frames", 0, "use only so many frames of each trace; 0: all")
	f.Usage = func() {
		fmt.Fprintln(stderr, "usage: go run . [flags] [TRACE...]")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.cfg.Frames != 0 && o.cfg.Frames < compare.MinFrames {
		return fmt.Errorf("--frames %d: want at least %d", o.cfg.Frames, compare.MinFrames)
	}
	if _, err := os.Stat(o.out); o.out != "" && err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	results, err := o.compare(ctx, f.Args(), stderr)
	if err != nil {
		return err
	}
	s := compare.Summarize(results)
	if o.out != "" {
		if err := draw(o.out, s); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			Traces  []*compare.Result `json:"traces"`
			Summary *compare.Summary  `json:"summary"`
		}{results, s})
	}
	_, err = io.WriteString(stdout, tables(results, s))
	return err
}

// compare runs everything on every trace. Frames that differ from what was sent are an error.
func (o *options) compare(ctx context.Context, paths []string, stderr io.Writer) ([]*compare.Result, error) {
	if len(paths) == 0 {
		var err error
		if paths, err = filepath.Glob(ownTraces); err != nil || len(paths) == 0 {
			return nil, errors.New("no traces at " + ownTraces + ": run it in bench, or name some")
		}
	}
	o.cfg.Progress = func(trace, scheme string) { fmt.Fprintf(stderr, "%s: %s\n", trace, scheme) }
	var results []*compare.Result
	for _, path := range paths {
		t, err := trace.Load(path, nil)
		if err != nil {
			return nil, err
		}
		r, err := compare.Run(ctx, t, o.cfg)
		if err != nil {
			return nil, err
		}
		if n := r.Wrong(); n > 0 {
			return nil, fmt.Errorf("%s: %d frames differ from what was sent", t.Name, n)
		}
		results = append(results, r)
	}
	return results, nil
}
