package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/bots"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/trace"
	"github.com/uplink-rpc/uplink/transport"
)

type botsOptions struct {
	bots.Options
	sealing            sealing
	schema, codec, key string
	json               bool
}

func newBotsCommand() *cobra.Command {
	var o botsOptions
	c := &cobra.Command{
		Use:   "bots TRACE...",
		Short: "Load a dedicated server with many players of recorded traces",
		Long: `bots plays traces from many clients to a dedicated server (uplink ds --report, say), each from its own place in the
trace, and their calls spread over the period. It reports what arrived, round trips, and how late the bots themselves
were: where that is much, the machine that runs the bots is the limit, and not the server.

The report is of the time after all have joined. Players who lose their connection make it again, and are counted.`,
		Example: `  uplink bots --to 127.0.0.1:7777 --players 500 --for 30s portal2_coop_60hz.csv.gz
  uplink bots --to 203.0.113.7:7777 --key ds.key.issuer --rebind-every 30s portal2_coop_60hz.csv.gz
  uplink bots --to 127.0.0.1:7777 --players 100 --loss 5% --burst 3 --rtt 80ms --for 1h --json moves.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Codec, err = codecFlag(o.codec); err != nil {
				return err
			}
			if err := cmp.Or(checkAddress("to", o.To), o.sealing.check(), o.Validate()); err != nil {
				return usageError{err}
			}
			o.Suites, o.Insecure = o.sealing.suites(), o.sealing.insecure
			if o.KeyLog, err = openKeyLog(cmd); err != nil {
				return err
			}
			if o.key != "" {
				if o.Issuer, err = loadIssuerKey(o.key); err != nil {
					return err
				}
			}
			return runBots(cmd, args, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.To, "to", "127.0.0.1:7777", "UDP address of the server")
	f.IntVar(&o.Players, "players", 100, "number of players; each has a socket of its own")
	f.Float64Var(&o.Rate, "rate", 60, "calls a second of each player, whatever the trace was recorded at; 0 has them stay idle")
	f.DurationVar(&o.Ramp, "ramp", 5*time.Second, "time over which the players join")
	f.DurationVar(&o.For, "for", 0, "how long to play once all have joined; 0s means until Ctrl-C")
	f.DurationVar(&o.Wait, "wait", 3*time.Second, "how long each waits for the server's answer")
	f.StringVar(&o.key, "key", "", "file of the issuer's key: each bot makes tokens of its own with it")
	f.DurationVar(&o.RebindEvery, "rebind-every", 0, "time after which each player takes another socket; 0s means never")
	f.StringVar(&o.schema, schemaFlag, "", "schema file of all traces, instead of the one beside each")
	f.StringVar(&o.codec, "codec", rpcdelta.DefaultCodec.String(), "how frames become bits")
	f.Var((*redundancy)(&o.Redundancy), "redundancy", "older payloads' frames sent along: auto, off or 1 to 7")
	o.Link = simlink.Config{Burst: 1, Seed: 1}
	o.Link.AddFlags(f)
	f.BoolVar(&o.json, "json", false, "write the report as JSON")
	o.sealing.addFlags(f, "talk to other addresses than loopback with a key that everybody has, and allow --suite none")
	return c
}

func runBots(cmd *cobra.Command, paths []string, o *botsOptions) error {
	var traces []*trace.Trace
	for _, path := range paths {
		t, err := loadTrace(path, o.schema)
		if err != nil {
			return err
		}
		traces = append(traces, t)
	}
	line := newLine(cmd.ErrOrStderr())
	report, err := bots.Run(cmd.Context(), traces, o.Options, func(p bots.Progress) { line.show(p.String()) })
	line.clear()
	if report == nil {
		return o.hint(err)
	}
	if o.json {
		err = errors.Join(json.NewEncoder(cmd.OutOrStdout()).Encode(report), err)
	} else {
		fmt.Fprint(cmd.OutOrStdout(), report)
	}
	return err
}

// hint adds what to do when nobody could connect.
func (o *botsOptions) hint(err error) error {
	switch {
	case errors.Is(err, bots.ErrSilence), errors.Is(err, transport.ErrTimeout):
		return hintedError{err, "is a server there? uplink ds --listen " + o.To + " --schema FILE --report 1s runs one; --wait waits longer"}
	}
	return hintFor(err)
}
