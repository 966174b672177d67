// Command interpolation plays a recording of cubes over a simulated link in virtual time and prints
// the errors of each method of interpolation:
//
//	go run ./docs/interpolation [-runs N] [-loss SHARE] [-jitter TIME] [-svg FILE] [-json] RECORDING
//
// See internal/lab/playback and docs/interpolation.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/playback"
	"github.com/uplink-rpc/uplink/transport/simnet"
)

var rates = []int{10, 20, 30, 60}

// drawn is the number of schemes in the chart, from the first.
const drawn = 4

type report struct {
	Results []playback.Result `json:"results"`
	Duels   []*playback.Duel  `json:"duels"`
}

func main() {
	o := playback.Options{Link: simnet.Config{Delay: 50 * time.Millisecond}}
	flag.Float64Var(&o.Link.Loss, "loss", 0.05, "packet loss, 0 to 1")
	flag.DurationVar(&o.Link.Jitter, "jitter", 2*time.Second/cubes.Rate, "mean jitter; its maximum is four times that")
	flag.Uint64Var(&o.Link.Seed, "seed", 1, "random seed of the link in the first run")
	flag.IntVar(&o.Runs, "runs", 8, "number of runs")
	svg := flag.String("svg", "", "SVG file for a chart of position errors")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if flag.NArg() != 1 || o.Runs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), o, *svg, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "interpolation:", err)
		os.Exit(1)
	}
}

func run(path string, o playback.Options, svg string, asJSON bool) error {
	frames, err := cubes.Load(path)
	if err != nil {
		return err
	}
	if len(frames) < 10*cubes.Rate {
		return fmt.Errorf("%s: %d frames, want at least ten seconds", path, len(frames))
	}
	world := playback.NewWorld(frames)
	var all report
	for _, hz := range rates {
		o.Hz = hz
		results, duel, err := playback.Run(world, o)
		if err != nil {
			return err
		}
		all.Results, all.Duels = append(all.Results, results...), append(all.Duels, duel)
	}
	if svg != "" {
		if err := os.WriteFile(svg, []byte(draw(all.Results)), 0o644); err != nil {
			return err
		}
	}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	return write(os.Stdout, all)
}

func write(out io.Writer, all report) error {
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
			fmt.Fprintf(w, "%d\t%s\t%d\t%.2f\t%.2f\t%.1f %%\t%.2f\t\n", rates[i], s.name, s.Count, s.Linear, s.Hermite, 100*s.Worse, s.By)
		}
	}
	return w.Flush()
}

// draw returns the chart, with one row per rate.
func draw(results []playback.Result) string {
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
