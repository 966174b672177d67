// Cubes simulates the world of the networked-physics articles with ODE. It serves a page that shows
// the world at both ends of a link, compares replication modes, and records runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/web"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/metrics/dashboard"
)

func main() {
	if err := newRootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "cubes:", err)
		os.Exit(1)
	}
}

// newRootCommand returns the command line. Without a subcommand it serves the page.
func newRootCommand() *cobra.Command {
	o := serveOptions{settings: web.DefaultSettings()}
	c := &cobra.Command{
		Use:   "cubes",
		Short: "Shows and compares replication modes on a world of 901 cubes",
		Long: `cubes simulates the world of the networked-physics articles and serves a page on which you can play in it and
watch how each replication mode shows it to a client.`,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return serve(c.Context(), &o, c.OutOrStdout()) },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := c.Flags()
	f.StringVar(&o.addr, "http", "127.0.0.1:7080", "address of the page, on loopback")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the script")
	f.DurationVar(&o.runs, "for", 0, "time after which it stops; 0: run until it is interrupted")
	f.StringVar(&o.settings.Mode, "mode", o.settings.Mode, "initial replication mode: full, snapshots, state")
	f.Float64Var(&o.settings.Sight, "sight", o.settings.Sight, "initial distance that the client of compressed snapshots sees, in meters; 0: the whole world")
	f.Float64Var(&o.settings.Loss, "loss", o.settings.Loss, "initial fraction of packets lost, each direction")
	f.Float64Var(&o.settings.RTT, "rtt", o.settings.RTT, "initial round-trip time, in ms")
	f.Float64Var(&o.settings.Jitter, "jitter", o.settings.Jitter, "initial maximum jitter, each direction, in ms")
	c.AddCommand(newRecordCommand(), newMeasureCommand())
	return c
}

func newMeasureCommand() *cobra.Command {
	cfg := session.CompareConfig{
		World: world.Default(), Time: 50 * time.Second, Warmup: 5 * time.Second, Seed: 1, Runs: 3, Budgets: []int{64, 128, 256, 512},
		Link: session.Link{RTT: 100 * time.Millisecond, Jitter: 33 * time.Millisecond, Loss: 0.05, Seed: 1},
	}
	var svg string
	c := &cobra.Command{
		Use:   "measure",
		Short: "Compares replication modes on scripted runs, in virtual time",
		Long: `measure plays scripted runs over a simulated link, in each replication mode and with each budget, and prints one table
of all. Errors are those of cubes that move, against the server's world at the time that is drawn; the last column is how
far that time lies back. A pop is a cube that is drawn more than 5 cm from its expected position: the one in the previous
frame plus the motion that the client simulated or, if it does not simulate, the motion of the server's cube. Bandwidth
includes the headers of IP, UDP and the transport, and the AEAD tag.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if cfg.Time < time.Second || cfg.Time > time.Hour || len(cfg.Budgets) < 2 || cfg.Runs < 1 || cfg.Runs > 100 {
				return fmt.Errorf("--time is %v, with %d budgets, --runs %d: want 1s to 1h, two or more, 1 to 100", cfg.Time, len(cfg.Budgets), cfg.Runs)
			}
			results, err := session.Compare(cfg)
			if err != nil {
				return err
			}
			session.WriteTable(c.OutOrStdout(), results)
			if svg == "" {
				return nil
			}
			return os.WriteFile(svg, []byte(session.Figure(results, cfg.Budgets).SVG()), 0o644)
		},
	}
	f := c.Flags()
	f.DurationVar(&cfg.Time, "time", cfg.Time, "length of a run")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the script in the first run")
	f.IntVar(&cfg.Runs, "runs", cfg.Runs, "number of runs, with consecutive seeds, that are combined")
	f.IntSliceVar(&cfg.Budgets, "budgets", cfg.Budgets, "bandwidths to compare, in kbit/s")
	f.DurationVar(&cfg.Link.RTT, "rtt", cfg.Link.RTT, "round-trip time without jitter")
	f.DurationVar(&cfg.Link.Jitter, "jitter", cfg.Link.Jitter, "maximum additional delay of a packet, each direction")
	f.Float64Var(&cfg.Link.Loss, "loss", cfg.Link.Loss, "fraction of packets lost, each direction")
	f.StringVar(&svg, "svg", "", "write a figure to this file")
	return c
}

type serveOptions struct {
	addr     string
	seed     uint64
	runs     time.Duration
	settings web.Settings
}

// serve runs the world and the page until the context is done or the process is interrupted.
func serve(ctx context.Context, o *serveOptions, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if o.runs > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, o.runs)
		defer end()
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	guard, err := dashboard.NewGuard(listener.Addr(), "")
	if err != nil {
		return err
	}
	l, err := web.NewLive(ctx, world.Default(), o.seed, o.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	server := &http.Server{Handler: guard.Handler(web.NewPage(l)), ReadHeaderTimeout: 10 * time.Second}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve(listener) }() // returns after Close
	fmt.Fprintf(out, "http://%v shows the world; arrow keys, space and z play\n", listener.Addr())
	return l.Run(ctx)
}
