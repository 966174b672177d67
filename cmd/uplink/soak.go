package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/hostile"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/soak"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/trace/sample"
)

type soakOptions struct {
	soak.Options
	schema  string
	json    bool
	hostile hostile.Options
}

// What --players and --for are with --hostile, unless they are set.
const (
	hostilePlayers = 20
	hostileFor     = time.Minute
)

// setHostile takes the flags that both kinds of soak have.
func (o *soakOptions) setHostile(set func(flag string) bool) {
	o.hostile.Players, o.hostile.For = hostilePlayers, hostileFor
	if set("players") {
		o.hostile.Players = o.Players
	}
	if set("for") {
		o.hostile.For = o.For
	}
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
back, or if goroutines, memory or file descriptors grew from round to round.

With --hostile it measures attacks instead. A server in a process of its own has honest players, and beside them so many
authenticated clients that do all that their sessions permit, each of another kind. Then it has honest clients in their
place that send equally many datagrams. It ends with an error if a hostile client costs the server more than 2 % of a
core more than the honest one in its place, or if the other players kept less than 99.9 % of their frames.`,
		Example: `  uplink soak --for 30m
  uplink soak --for 3m --phase 10s --players 50 portal2_coop_60hz.csv.gz
  uplink soak --for 1h --json
  uplink soak --hostile 20
  uplink soak --hostile 20 --kinds resets,bundles --for 20s`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			validate, run := o.Validate, func() error { return runSoak(cmd, args, &o) }
			if cmd.Flags().Changed(hostileFlag) {
				o.setHostile(cmd.Flags().Changed)
				validate, run = o.hostile.Validate, func() error { return runHostile(cmd, &o) }
			}
			if err := validate(); err != nil {
				return usageError{err}
			}
			return run()
		},
	}
	f := c.Flags()
	f.IntVar(&o.Players, "players", 100, "number of players; each has a socket of its own")
	f.DurationVar(&o.For, "for", 30*time.Minute, "how long, rounded down to whole rounds")
	f.DurationVar(&o.Phase, "phase", 10*time.Second, "how long each condition of a round lasts")
	f.StringVar(&o.schema, schemaFlag, "", "schema file of all traces, instead of the one beside each")
	f.IntVar(&o.hostile.Hostile, hostileFlag, 0, "measure the cost of so many hostile clients instead; --players is then 20 and --for 1m, unless set")
	f.StringSliceVar(&o.hostile.Kinds, "kinds", nil, "kinds of hostile clients, separated by commas; default all: "+strings.Join(hostile.Kinds(), ", "))
	f.BoolVar(&o.json, "json", false, "write a line of JSON for each phase, and nothing else")
	return c
}

const hostileFlag = "hostile"

func runHostile(cmd *cobra.Command, o *soakOptions) error {
	out, line := cmd.OutOrStdout(), newLine(cmd.ErrOrStderr())
	stop := line.tick(func(elapsed time.Duration) string { return fmt.Sprintf("%v, two phases of %v", elapsed, o.hostile.For) })
	defer stop()
	result, err := hostile.Run(cmd.Context(), o.hostile, nil, hostile.StartProcess, func(p hostile.Phase) {
		line.clear()
		if !o.json {
			fmt.Fprintln(out, p)
		}
	})
	stop()
	if err != nil {
		return err
	}
	if o.json {
		_ = json.NewEncoder(out).Encode(result) // whoever reads it may be gone
	} else {
		fmt.Fprintf(out, "a hostile client costs %.2f %% of a core more than an honest one that sends as many datagrams\n", 100*result.Added)
	}
	return result.Verdict()
}

// newSoakServerCommand returns the server of soak --hostile, which starts it.
func newSoakServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: hostile.Command, Hidden: true, Args: cobra.NoArgs,
		Short: "The server of soak --hostile, which starts this",
		RunE:  func(cmd *cobra.Command, _ []string) error { return hostile.Answer(cmd.InOrStdin(), cmd.OutOrStdout()) },
	}
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
