package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/examples/cubes/measure"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

func newMeasureCommand() *cobra.Command {
	cfg := measure.Config{
		World: world.Default(), Time: 50 * time.Second, Warmup: 5 * time.Second, Seed: 1, Runs: 3, Budgets: []int{64, 128, 256, 512},
		Link: session.Link{RTT: 100 * time.Millisecond, Jitter: 33 * time.Millisecond, Loss: 0.05, Seed: 1},
	}
	var svg string
	c := &cobra.Command{
		Use:   "measure",
		Short: "Measures the ways down on scripted runs, in virtual time",
		Long: `measure plays scripted runs over a simulated link, by each way down and in each budget, and prints a table of all together. Errors are
those of cubes that move, against the server's world at the time that is drawn; that lies as far back as the last column says. A
pop is a cube that is drawn over 5 cm from where its motion since the last frame would have put it: what the client simulated,
or, where it does not simulate, what the server's cube did. Bits have
the headers of IP, UDP and the transport in them, and a seal. Jitter is the longest delay beside the round trip's half.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if cfg.Time < time.Second || cfg.Time > time.Hour || len(cfg.Budgets) < 2 || cfg.Runs < 1 || cfg.Runs > 100 {
				return fmt.Errorf("--time is %v, with %d budgets, --runs %d: want 1s to 1h, two or more, 1 to 100", cfg.Time, len(cfg.Budgets), cfg.Runs)
			}
			results, err := measure.Run(cfg)
			if err != nil {
				return err
			}
			measure.Table(c.OutOrStdout(), results)
			if svg == "" {
				return nil
			}
			return os.WriteFile(svg, []byte(measure.Figure(results, cfg.Budgets).SVG()), 0o644)
		},
	}
	f := c.Flags()
	f.DurationVar(&cfg.Time, "time", cfg.Time, "how long the run is")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "what the script does in the first run")
	f.IntVar(&cfg.Runs, "runs", cfg.Runs, "how many runs, of seeds that follow one another, are taken together")
	f.IntSliceVar(&cfg.Budgets, "budgets", cfg.Budgets, "in kbit/s")
	f.DurationVar(&cfg.Link.RTT, "rtt", cfg.Link.RTT, "round trip without jitter")
	f.DurationVar(&cfg.Link.Jitter, "jitter", cfg.Link.Jitter, "longest further delay of a packet, each way")
	f.Float64Var(&cfg.Link.Loss, "loss", cfg.Link.Loss, "share of packets lost, each way")
	f.StringVar(&svg, "svg", "", "write a figure to this file")
	return c
}
