package main

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/demo"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/metrics"
)

func newDemoCommand() *cobra.Command {
	var o demo.Options
	var codec string
	var sealing sealing
	var capturing capturing
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show server, clients and a lossy link in one process, with a dashboard",
		Long: `demo starts a dedicated server and clients in one process. The clients repeat a minute of recorded play over real UDP
sockets with a simulated link. A table shows the bit rates each second, and a dashboard in the browser shows more: its
address is printed first.

Server and clients use temporary keys and connect tokens: datagrams are encrypted as on a public address.`,
		Example: `  uplink demo
  uplink demo --loss 10% --burst 3 --rtt 200ms --jitter 20ms
  uplink demo --suite compact
  uplink demo --clients 64 --for 10s
  uplink demo --json --for 10s --metrics 127.0.0.1:9464`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Codec, err = codecFlag(codec); err != nil {
				return err
			}
			if err := cmp.Or(sealing.check(), capturing.check(), o.Validate(), checkMetrics(o.Metrics)); err != nil {
				return usageError{err}
			}
			o.Suites = sealing.suites()
			if o.Codec != rpcdelta.Adaptive && !cmd.Flags().Changed(presetFlag) {
				o.Preset = client.Preset{}
			}
			if err := checkPreset(&o.Preset, o.Codec); err != nil {
				return usageError{err}
			}
			if o.KeyLog, err = openKeyLog(cmd); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			captured, tap, err := capturing.start(log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, endCapture(captured, log)) }()
			if o.Tap = tap; captured != nil {
				o.Collectors = append(o.Collectors, metrics.NewFileLosses("capture", func() uint64 { return captured.Stats().Lost }))
			}
			o.Live = isTerminal(cmd.OutOrStdout())
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	f := c.Flags()
	o.Link = simlink.Config{RTT: 80 * time.Millisecond, Loss: 0.05, Burst: 1, Seed: 1}
	o.Link.AddFlags(f)
	f.IntVar(&o.Clients, "clients", 8, "number of clients")
	f.StringVar(&codec, "codec", rpcdelta.DefaultCodec.String(), "codec")
	o.Preset = client.Balanced
	addPresetFlag(f, &o.Preset)
	f.DurationVar(&o.For, "for", 0, "how long to play; 0s: until Ctrl-C")
	capturing.addFlags(f, "--capture")
	f.BoolVar(&o.JSON, "json", false, "print a line of JSON each second and one for the whole time, and nothing else")
	sealing.addFlags(f, "permit --suite none")
	f.StringVar(&o.Metrics, "metrics", "127.0.0.1:0", "address of the HTTP server with the dashboard at / and with /metrics; port 0: any free one")
	f.StringVar(&o.HTTPToken, "http-token", "", "token for the dashboard, 16 characters or more; by default a random one on addresses other than loopback")
	f.BoolVar(&o.Debug, "debug", false, "serve /debug/pprof and /debug/vars too, to loopback only")
	return c
}
