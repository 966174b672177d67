package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/soak"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

type soakOptions struct {
	soak.Options
	schema string
	json   bool
}

func newSoakCommand() *cobra.Command {
	var o soakOptions
	c := &cobra.Command{
		Use:   "soak [TRACE...]",
		Short: "Run a server and players for long, through all that a network does, and see whether anything breaks or grows",
		Long: `soak runs a dedicated server and players of traces, or of recorded play that it brings along, in one process over real
sockets: with loss that changes, players who change their address, and a server that ends and comes back, with or
without telling. Each frame that the server gets is compared with what was played.

It prints a line at the end of each phase. It ends with an error if a frame was another one, if players did not come
back, or if goroutines, memory or file descriptors grew from round to round.`,
		Example: `  uplink soak --for 30m
  uplink soak --for 3m --phase 10s --players 50 portal2_coop_60hz.csv.gz
  uplink soak --for 1h --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			return runSoak(cmd, args, &o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Players, "players", 100, "number of players; each has a socket of its own")
	f.DurationVar(&o.For, "for", 30*time.Minute, "how long, rounded down to whole rounds")
	f.DurationVar(&o.Phase, "phase", 10*time.Second, "how long each condition of a round lasts")
	f.StringVar(&o.schema, schemaFlag, "", "schema file of all traces, instead of the one beside each")
	f.BoolVar(&o.json, "json", false, "write a line of JSON for each phase, and nothing else")
	return c
}

func runSoak(cmd *cobra.Command, paths []string, o *soakOptions) error {
	traces := []*trace.Trace{sample.Portal2()}
	if len(paths) > 0 {
		traces = nil
	}
	for _, path := range paths {
		t, err := loadTrace(path, o.schema)
		if err != nil {
			return err
		}
		if len(traces) > 0 && t.Schema.Fingerprint() != traces[0].Schema.Fingerprint() {
			return fmt.Errorf("%s: another schema than that of %s; run a soak for each", path, paths[0])
		}
		traces = append(traces, t)
	}
	out, line := cmd.OutOrStdout(), newLine(cmd.ErrOrStderr())
	stop := line.tick(func(elapsed time.Duration) string { return fmt.Sprintf("%v of %v", elapsed, o.For) })
	defer stop()
	err := soak.Run(cmd.Context(), traces, o.Options, func(p soak.Phase) {
		line.clear()
		if o.json {
			_ = json.NewEncoder(out).Encode(p) // whoever reads it may be gone
			return
		}
		fmt.Fprintln(out, p)
	})
	stop()
	if err == nil && !o.json {
		fmt.Fprintln(out, "nothing broke, nothing grew")
	}
	return err
}
