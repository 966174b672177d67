package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/lab/internal/peer"
	"github.com/uplink-rpc/uplink/lab/internal/worldbench"
)

// trainFrames is the number of frames on which peers are trained.
const trainFrames = 600

type compareWorldsOptions struct {
	cfg     worldbench.Config
	players []int
	out     string
}

func newCompareWorldsCommand() *cobra.Command {
	o := compareWorldsOptions{cfg: worldbench.Config{Loss: .02, MinRTT: 20 * time.Millisecond, MaxRTT: 200 * time.Millisecond, Seed: 1}}
	cmd := &cobra.Command{
		Use:   "compare-worlds [RECORDING]",
		Short: "Compare designs of the snapshots of a world that is sent to many players",
		Args:  cobra.MaximumNArgs(1),
		RunE:  o.run,
	}
	cmd.Flags().IntSliceVar(&o.players, "players", []int{1, 8, 64, 256, 1000}, "numbers of players")
	cmd.Flags().IntVar(&o.cfg.Ticks, "ticks", 1140, "number of measured ticks")
	cmd.Flags().StringVar(&o.out, "output", "", "directory for a chart in an SVG file; empty: none")
	return cmd
}

func (o *compareWorldsOptions) run(cmd *cobra.Command, args []string) error {
	if err := checkOutput(o.out); err != nil {
		return err
	}
	path := recording
	if len(args) > 0 {
		path = args[0]
	}
	frames, err := cubes.Load(path)
	if err != nil {
		return err
	}
	cfg := o.cfg
	cfg.Clock = clock()
	if cfg.Scene, err = worldbench.Recorded(frames); err != nil {
		return err
	}
	sample, err := worldbench.Play(cfg.Scene, min(len(frames), trainFrames))
	if err != nil {
		return err
	}
	var results []*worldbench.Result
	for _, cfg.Players = range o.players {
		cfg.Peers = peer.Worlds(sample)
		cmd.PrintErrln(cfg.Players, "players")
		r, err := worldbench.Run(cmd.Context(), cfg)
		switch {
		case err != nil:
			return err
		case r.Mismatches > 0:
			return fmt.Errorf("%d players: %d snapshots differ from what was sent", r.Players, r.Mismatches)
		}
		results = append(results, r)
	}
	if o.out != "" && len(results) > 1 {
		if err := os.WriteFile(filepath.Join(o.out, "bench-world.svg"), []byte(worldChart(results).SVG()), 0o644); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return emit(cmd, false, results, func(b *strings.Builder) { writeDesigns(b, results) })
}

// design is the cost of coding a tick for all players.
type design struct {
	name         string
	nanos, bytes float64
}

func designs(r *worldbench.Result) (all []design) {
	for _, p := range r.Peers {
		all = append(all, design{p.Name, p.CodingNs, p.SnapshotBytes})
	}
	return append(all, design{"shared", r.EncodeNs, r.SnapshotBytes})
}

func worldChart(results []*worldbench.Result) *chart.Chart {
	c := &chart.Chart{Title: "Time of coding a tick of 901 cubes for all players", XUnit: "players", YUnit: "ms", Log: true}
	for _, d := range designs(results[0]) {
		c.Lines = append(c.Lines, chart.Line{Name: d.name})
	}
	for _, r := range results {
		c.X = append(c.X, float64(r.Players))
		for i, d := range designs(r) {
			c.Lines[i].Y = append(c.Lines[i].Y, d.nanos/1e6)
		}
	}
	return c
}

const designNotes = `bytes  per snapshot and player; us: coding and learning of a tick for all players, without encryption and sending. The same
       world, round trips of 20 to 200 ms and losses of 2 % for all, in one run on one processor.
full, zstd  each snapshot as a whole. quake3: the delta of Quake 3. Both are measured for up to 16 players and
       scaled up to all.
shared  at most 8 encodings per tick for all players, as uplink sends them.
`

func writeDesigns(b *strings.Builder, results []*worldbench.Result) {
	head, second := []string{"players"}, []string{""}
	for _, r := range results {
		head = append(head, fmt.Sprint(r.Players), "")
		second = append(second, "bytes", "us")
	}
	rows := [][]string{head, second}
	for i, d := range designs(results[0]) {
		row := []string{d.name}
		for _, r := range results {
			d := designs(r)[i]
			row = append(row, table.Row("%.1f|%.0f", d.bytes, d.nanos/1e3)...)
		}
		rows = append(rows, row)
	}
	table.Write(b, rows)
	b.WriteString("\n" + designNotes)
}
