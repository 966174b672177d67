package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

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
