package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/lab/internal/playback"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

// interpolatedRates are the numbers of snapshots per second.
var interpolatedRates = []int{10, 20, 30, 60}

// drawn is the number of schemes in the chart, from the first.
const drawn = 4

// interpolated are the results of all interpolatedRates.
type interpolated struct {
	Results []playback.Result
	Duels   []*playback.Duel
}

func newInterpolationCommand() *cobra.Command {
	o := playback.Options{Link: simnet.Config{Delay: 50 * time.Millisecond, Seed: 1}}
	var svg string
	cmd := &cobra.Command{
		Use:   "interpolation [RECORDING]",
		Short: "Measure the errors of methods of interpolation",
		Long: `interpolation plays a recording of cubes over a simulated link in virtual time and prints the errors of each method of
interpolation; see docs/interpolation.md.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return interpolate(cmd, append(args, recording)[0], o, svg)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Link.Loss, "loss", 0.05, "packet loss, 0 to 1")
	f.DurationVar(&o.Link.Jitter, "jitter", 2*time.Second/cubes.Rate, "mean jitter; its maximum is four times that")
	f.IntVar(&o.Runs, "runs", 8, "number of runs")
	f.StringVar(&svg, "svg", "", "write a chart of position errors to this file")
	return cmd
}

func interpolate(cmd *cobra.Command, path string, o playback.Options, svg string) error {
	frames, err := cubes.Load(path)
	if err != nil {
		return err
	}
	if len(frames) < 10*cubes.Rate || o.Runs < 1 {
		return fmt.Errorf("%s: %d frames, %d runs, want at least ten seconds, and a run", path, len(frames), o.Runs)
	}
	world := playback.NewWorld(frames)
	var all interpolated
	for _, hz := range interpolatedRates {
		o.Hz = hz
		results, duel, err := playback.Run(world, o)
		if err != nil {
			return err
		}
		all.Results, all.Duels = append(all.Results, results...), append(all.Duels, duel)
	}
	if svg != "" {
		if err := os.WriteFile(svg, []byte(drawErrors(all.Results)), 0o644); err != nil {
			return err
		}
	}
	return writeErrors(cmd.OutOrStdout(), all)
}

func writeErrors(out io.Writer, all interpolated) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "Hz\tscheme\tmm mean\tp99\tdegrees mean\tp99\thitches/min\tstarved\tadded ms\t")
	for _, r := range all.Results {
		fmt.Fprintf(w, "%d\t%s\t%.2f\t%.1f\t%.2f\t%.1f\t%.1f\t%.2f %%\t%.0f\t\n",
			r.Hz, r.Name, r.Position.Mean, r.Position.P99, r.Orientation.Mean, r.Orientation.P99, r.Hitches, 100*r.Starved, r.Delay)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(w, "Hz\tcubes\tcount\tlinear mm\tHermite mm\tHermite worse in\tby mm\t")
	for i, d := range all.Duels {
		for _, s := range []struct {
			name string
			playback.Side
		}{{"resting", d.Resting}, {"free", d.Free}, {"hit", d.Hit}} {
			fmt.Fprintf(w, "%d\t%s\t%d\t%.2f\t%.2f\t%.1f %%\t%.2f\t\n", interpolatedRates[i], s.name, s.Count, s.Linear, s.Hermite, 100*s.Worse, s.By)
		}
	}
	return w.Flush()
}

// drawErrors returns the chart, with one row per rate.
func drawErrors(results []playback.Result) string {
	c := chart.Bars{Title: "Mean error of the position of moving cubes, by snapshots per second", Unit: "mm"}
	for _, r := range results {
		if len(c.Names) < drawn {
			c.Names = append(c.Names, r.Name)
		}
		name := fmt.Sprintf("%d Hz", r.Hz)
		if len(c.Rows) == 0 || c.Rows[len(c.Rows)-1].Name != name {
			c.Rows = append(c.Rows, chart.Row{Name: name})
		}
		if row := &c.Rows[len(c.Rows)-1]; len(row.Values) < drawn {
			row.Values = append(row.Values, max(r.Position.Mean, 1e-3)) // the axis has no zero
		}
	}
	return c.SVG()
}
