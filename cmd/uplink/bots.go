package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/load"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
)

type botsOptions struct {
	load.Options
	sealing            sealing
	schema, codec, key string
	backend, secret    string
	json               bool
}

func newBotsCommand() *cobra.Command {
	var o botsOptions
	c := &cobra.Command{
		Use:   "bots TRACE...",
		Short: "Load-test a dedicated server with many players of recorded traces",
		Long: `bots load-tests a dedicated server, such as uplink ds --report. Each bot plays a trace from a position of its own, and
their calls are spread over the period. bots reports delivery, RTT, and how late the bots themselves were: if they were
late, the machine that runs the bots is the limit, not the server.

With --backend, each bot gets its server and token from a backend, as the clients of a game do, and another one when its
server does not answer.

The report covers the time after all bots have connected. Bots that lose their connection reconnect, and are counted,
and so are handovers to other servers.`,
		Example: `  uplink bots --to 127.0.0.1:7777 --players 500 --for 30s portal2_coop_60hz.csv.gz
  uplink bots --to 203.0.113.7:7777 --key ds.key.issuer --rebind-every 30s portal2_coop_60hz.csv.gz
  uplink bots --backend http://127.0.0.1:8080/ --players 300 --for 1m portal2_coop_60hz.csv.gz
  uplink bots --to 127.0.0.1:7777 --players 100 --loss 5% --burst 3 --rtt 80ms --for 1h --json moves.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Codec, err = codecFlag(o.codec); err != nil {
				return err
			}
			if err := cmp.Or(o.checkBackend(cmd), checkServer("to", o.To), checkPreset(&o.Preset, o.Codec), o.sealing.check(), o.Validate()); err != nil {
				return usageError{err}
			}
			o.Suites, o.Insecure = o.sealing.suites(), o.sealing.insecure
			if o.KeyLog, err = openKeyLog(cmd); err != nil {
				return err
			}
			log := (&logging{}).logger(cmd.ErrOrStderr())
			if o.backend != "" {
				secret, err := readSecret("game-secret", o.secret, log)
				if err != nil {
					return err
				}
				o.Assign = load.Backend(o.backend, secret)
			}
			if o.key != "" {
				if o.Issuer, err = loadIssuerKey(o.key, log); err != nil {
					return err
				}
			}
			return runBots(cmd, args, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.To, "to", "127.0.0.1:7777", "UDP address of the server")
	f.IntVar(&o.Players, "players", 100, "number of players; each has a socket of its own")
	f.Float64Var(&o.Rate, "rate", 60, "calls per second of each player, whatever the trace's rate; 0: idle players")
	f.DurationVar(&o.Ramp, "ramp", 5*time.Second, "time over which the players connect")
	f.DurationVar(&o.For, "for", 0, "how long to play after all have connected; 0s: until Ctrl-C")
	f.DurationVar(&o.Wait, "wait", 3*time.Second, "how long each waits for the server's answer")
	f.StringVar(&o.backend, "backend", "", "URL of uplink backend, which chooses a server for each player, also when one does not answer; instead of --to and --key")
	f.StringVar(&o.secret, "game-secret", "", "file with the secret for --backend")
	f.StringVar(&o.key, "key", "", "file with the issuer key; issues a token for each bot")
	f.StringVar(&o.Route, "route", "", "route id of the server behind a proxy, in the tokens of --key")
	f.DurationVar(&o.RebindEvery, "rebind-every", 0, "interval at which each player rebinds to another socket; 0s: never")
	f.StringVar(&o.schema, schemaFlag, "", "schema file for all traces, instead of NAME.schema.json of each")
	f.StringVar(&o.codec, "codec", rpcdelta.DefaultCodec.String(), "codec")
	addPresetFlag(f, &o.Preset)
	f.Var((*redundancy)(&o.Redundancy), "redundancy", "redundant frames in each payload: auto, off or 1 to 15")
	o.Link = simlink.Config{Burst: 1, Seed: 1}
	o.Link.AddFlags(f)
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	o.sealing.addFlags(f, "permit addresses other than loopback with a public test key, and --suite none")
	return c
}

// checkBackend returns an error unless --backend is a URL and excludes the flags of a server.
func (o *botsOptions) checkBackend(cmd *cobra.Command) error {
	if o.backend == "" {
		if o.secret != "" {
			return errors.New("--game-secret: it needs --backend")
		}
		return nil
	}
	for _, name := range []string{"to", "key", "route"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: --backend chooses servers and issues tokens; leave one of them out", name)
		}
	}
	return checkURLs("backend", o.backend)
}

func runBots(cmd *cobra.Command, paths []string, o *botsOptions) error {
	traces, err := loadTraces(paths, o.schema)
	if err != nil {
		return err
	}
	line := newLine(cmd.ErrOrStderr())
	report, err := load.Run(cmd.Context(), traces, o.Options, func(p load.Progress) { line.show(p.String()) })
	line.clear()
	if report == nil {
		if o.backend != "" {
			return hintFor(err)
		}
		return dialHint(err, o.To)
	}
	if o.json {
		err = errors.Join(json.NewEncoder(cmd.OutOrStdout()).Encode(report), err)
	} else {
		fmt.Fprint(cmd.OutOrStdout(), report)
	}
	return err
}
