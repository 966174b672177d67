package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/hostile"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/soak"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load/visits"
	"github.com/uplink-rpc/uplink/internal/sample"
)

type soakOptions struct {
	soak.Options
	schema  string
	json    bool
	hostile hostile.Options
	fleet   visits.Options
	seed    uint64
}

const (
	hostileFlag = "hostile"
	fleetFlag   = "fleet"
	// Defaults of --players with --hostile and with --fleet, and of --for with either.
	hostilePlayers = 20
	fleetPlayers   = 200
	otherFor       = time.Minute
)

// shared returns the values of --players and --for for a run with --hostile or --fleet. players is
// the default of --players.
func (o *soakOptions) shared(set func(flag string) bool, players int) (int, time.Duration) {
	duration := otherFor
	if set("players") {
		players = o.Players
	}
	if set("for") {
		duration = o.For
	}
	return players, duration
}

func newSoakCommand() *cobra.Command {
	var o soakOptions
	c := &cobra.Command{
		Use:   "soak [TRACE...]",
		Short: "Soak-test a server and players under changing network conditions",
		Long: `soak runs a dedicated server and players in one process over real sockets. The players play traces, or built-in
recordings. Packet loss varies, players change their address, and the server restarts with or without a shutdown
message. A second server hands players over to the first one and back, and both send a world. Each decoded frame is
compared with the trace.

It prints a line at the end of each phase. It fails if a frame differs, if players do not reconnect, or if goroutines,
memory or file descriptors grow from round to round.

With --hostile it measures attacks instead. A server in a process of its own serves honest players and authenticated
hostile clients, each with one kind of attack. In a second phase, honest clients that send as many datagrams replace
the hostile ones. It fails if a hostile client costs the server over 2 % of a core more than its replacement, or if the
other players kept less than 99.9 % of their frames.

With --fleet it plays on that many servers, each in a process of its own, over a link with a round-trip time of 100 ms
and 5 % packet loss. The servers hand players over to each other at random. Two of them are drained, and at the end two
are killed. It fails if a call differs, if a reliable call or message is lost or arrives twice before servers are
killed, if at a handover more than 2 calls are missing at the 99th percentile, if a drain takes over 30 s, or if players
of a killed server play elsewhere after more than 3 s.`,
		Example: `  uplink soak --for 30m
  uplink soak --for 3m --phase 10s --players 50 portal2_coop_60hz.csv.gz
  uplink soak --for 1h --json
  uplink soak --hostile 20
  uplink soak --hostile 20 --kinds resets,bundles --for 20s
  uplink soak --fleet 4 --players 100 --handovers 10`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			validate, run := o.Validate, func() error { return runSoak(cmd, args, &o) }
			switch {
			case cmd.Flags().Changed(fleetFlag):
				o.fleet.Players, o.fleet.For = o.shared(cmd.Flags().Changed, fleetPlayers)
				validate, run = o.fleet.Validate, func() error { return runFleet(cmd, &o) }
			case cmd.Flags().Changed(hostileFlag):
				o.hostile.Players, o.hostile.For = o.shared(cmd.Flags().Changed, hostilePlayers)
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
	f.DurationVar(&o.For, "for", 30*time.Minute, "duration, rounded down to whole rounds")
	f.DurationVar(&o.Phase, "phase", 10*time.Second, "duration of each condition of a round")
	f.StringVar(&o.schema, schemaFlag, "", "schema file for all traces, instead of NAME.schema.json of each")
	f.IntVar(&o.hostile.Hostile, hostileFlag, 0, "measure the cost of this many hostile clients instead; defaults are then --players 20 --for 1m")
	f.StringSliceVar(&o.hostile.Kinds, "kinds", nil, "comma-separated kinds of hostile clients; default all: "+strings.Join(hostile.Kinds(), ", "))
	f.IntVar(&o.fleet.Servers, fleetFlag, 0, "play on this many servers, 3 to 16; defaults are then --players 200 --for 1m")
	f.Float64Var(&o.fleet.Handovers, "handovers", 20, "with --fleet, handovers per second of random players to random servers")
	f.Float64Var(&o.fleet.Rate, "rate", 30, "with --fleet, calls per second of each player")
	f.Uint64Var(&o.seed, "seed", 1, "with --fleet, random seed of the simulated link")
	f.BoolVar(&o.json, "json", false, "print a line of JSON for each phase, and nothing else")
	return c
}

// during runs a soak with a status line. show prints the result of a phase as text or JSON.
func (o *soakOptions) during(
	cmd *cobra.Command, status func(elapsed time.Duration) string, run func(show func(phase any)) error,
) error {
	line := newLine(cmd.ErrOrStderr())
	stop := line.tick(status)
	defer stop()
	return run(func(phase any) {
		line.clear()
		if o.json {
			_ = json.NewEncoder(cmd.OutOrStdout()).Encode(phase) // fails only if the reader has ended
		} else {
			fmt.Fprintln(cmd.OutOrStdout(), phase)
		}
	})
}

func runHostile(cmd *cobra.Command, o *soakOptions) error {
	status := func(elapsed time.Duration) string { return fmt.Sprintf("%v, two phases of %v", elapsed, o.hostile.For) }
	return o.during(cmd, status, func(show func(any)) error {
		result, err := hostile.Run(cmd.Context(), o.hostile, nil, hostile.StartProcess, func(p hostile.Phase) {
			if !o.json {
				show(p)
			}
		})
		if err != nil {
			return err
		}
		show(result)
		return result.Verdict()
	})
}

func runFleet(cmd *cobra.Command, o *soakOptions) error {
	status := func(elapsed time.Duration) string { return fmt.Sprintf("%v", elapsed) }
	return o.during(cmd, status, func(show func(any)) error {
		result, err := visits.RunProcesses(cmd.Context(), o.fleet, o.seed, func(line string) {
			if !o.json {
				show(line)
			}
		})
		if err != nil {
			return err
		}
		if o.json {
			show(result)
		}
		return result.Verdict()
	})
}

// newSoakServerCommand returns the hidden command that soak --hostile starts.
func newSoakServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: hostile.Command, Hidden: true, Args: cobra.NoArgs,
		Short: "The server of soak --hostile",
		RunE:  func(cmd *cobra.Command, _ []string) error { return hostile.Answer(cmd.InOrStdin(), cmd.OutOrStdout()) },
	}
}

// newSoakFleetServerCommand returns the hidden command that soak --fleet starts.
func newSoakFleetServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: visits.Command, Hidden: true, Args: cobra.ExactArgs(3),
		Short: "A server of soak --fleet",
		RunE: func(cmd *cobra.Command, args []string) error {
			return visits.Answer(cmd.InOrStdin(), cmd.OutOrStdout(), args)
		},
	}
}

func runSoak(cmd *cobra.Command, paths []string, o *soakOptions) error {
	traces, err := loadTraces(paths, o.schema)
	if err != nil {
		return err
	}
	if len(traces) == 0 {
		traces = append(traces, sample.Portal2())
	}
	for _, t := range traces {
		if t.Schema.Fingerprint() != traces[0].Schema.Fingerprint() {
			return fmt.Errorf("%s: its schema differs from that of %s; run a soak for each", t.Name, traces[0].Name)
		}
	}
	status := func(elapsed time.Duration) string { return fmt.Sprintf("%v of %v", elapsed, o.For) }
	err = o.during(cmd, status, func(show func(any)) error {
		return soak.Run(cmd.Context(), traces, o.Options, func(p soak.Phase) { show(p) })
	})
	if err == nil && !o.json {
		fmt.Fprintln(cmd.OutOrStdout(), "no failures, no growth")
	}
	return err
}
