package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/bench/internal/peer"
	"github.com/uplink-rpc/uplink/internal/chart"
	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/worldbench"
	"github.com/uplink-rpc/uplink/internal/table"
)

// ownRecording is the recording of the repository, relative to this folder.
const ownRecording = "../testdata/traces/cubes_delta_data_2000.bin.gz"

// trainFrames is the number of frames on which peers are trained.
const trainFrames = 600

// runWorlds compares designs of snapshots for each number of players.
func (o *options) runWorlds(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	path := ownRecording
	if len(args) > 0 {
		path = args[0]
	}
	frames, err := cubes.Load(path)
	if err != nil {
		return err
	}
	began := time.Now()
	cfg := o.world
	cfg.Clock = func() time.Duration { return time.Since(began) }
	cfg.Loss, cfg.MinRTT, cfg.MaxRTT, cfg.Seed = .02, 20*time.Millisecond, 200*time.Millisecond, 1
	if cfg.Scene, err = worldbench.Recorded(frames); err != nil {
		return err
	}
	sample, err := worldbench.Play(cfg.Scene, min(len(frames), trainFrames))
	if err != nil {
		return err
	}
	var results []*worldbench.Result
	for text := range strings.SplitSeq(o.players, ",") {
		if cfg.Players, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("--players %s: want numbers with commas between them", o.players)
		}
		cfg.Peers = peer.Worlds(sample)
		fmt.Fprintf(stderr, "%d players\n", cfg.Players)
		r, err := worldbench.Run(ctx, cfg)
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
	if o.json {
		return writeJSON(stdout, results)
	}
	_, err = io.WriteString(stdout, worldTable(results))
	return err
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

const worldNotes = `bytes  per snapshot and player; us: coding and learning of a tick for all players, without encryption and sending. The same
       world, round trips of 20 to 200 ms and losses of 2 % for all, in one run on one processor.
full, zstd  each snapshot as a whole. quake3: the delta of Quake 3. Both are measured for up to 16 players and
       scaled up to all.
shared  at most 8 encodings per tick for all players, as uplink sends them.
`

func worldTable(results []*worldbench.Result) string {
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
	var b strings.Builder
	table.Write(&b, rows)
	b.WriteString("\n" + worldNotes)
	return b.String()
}
