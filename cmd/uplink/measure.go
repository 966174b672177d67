package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// traceFlags are the flags of commands that measure traces.
type traceFlags struct {
	schema string
	json   bool
}

func (o *traceFlags) add(f *pflag.FlagSet, json string) {
	f.StringVar(&o.schema, schemaFlag, "", "schema file for all traces, instead of NAME.schema.json of each")
	f.BoolVar(&o.json, "json", false, json)
}

// load loads a trace without damage.
func (o *traceFlags) load(path string) (*trace.Trace, error) { return loadTrace(path, o.schema) }

// ackHzUsage is the help of --ack-hz for commands that measure recordings.
const ackHzUsage = "maximum acks per second; 0: when they pay, as uplink ds sends them"

// addRun adds the flags that bench and analyze share.
func addRun(f *pflag.FlagSet, c *bench.Config, prior *string, payload string) {
	c.Link = simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1}
	c.Link.AddFlags(f)
	f.Float64Var(&c.AckHz, "ack-hz", 0, ackHzUsage)
	f.IntVar(&c.Ring, "ring", rpcdelta.DefaultRing, "ring size, in frames")
	f.Var((*redundancy)(&c.Redundancy), "redundancy", "redundant frames in each "+payload+": auto, off or 1 to 15")
	f.IntVar(&c.Distance, "distance", 0, "no link: encode each frame against the one this many before it")
	f.StringVar(prior, priorFlag, "", "prior from uplink train, instead of the built-in one")
}

// checked returns a RunE that checks the flags and then runs a command. Errors of the check are
// usage errors.
func checked(check func() error, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return usageError{err}
		}
		return run(cmd, args)
	}
}

// measureAll loads and measures traces one after the other, and shows the progress.
func measureAll[T, R any](
	cmd *cobra.Command, paths []string, load func(string) (T, error), measure func(T, *progress) (R, error),
) ([]R, error) {
	p := newProgress(cmd.ErrOrStderr())
	defer p.clear()
	var all []R
	for _, path := range paths {
		t, err := load(path)
		if err != nil {
			return nil, err
		}
		r, err := measure(t, p)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// emit writes results as JSON or as text.
func emit[T any](w io.Writer, asJSON bool, results []T, text func(b *strings.Builder)) error {
	if asJSON {
		return writeJSON(w, results)
	}
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFile writes the file that a flag names, if the flag is set.
func writeFile(flag, path string, content []byte) error {
	if path == "" {
		return nil
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}
