package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/table"
	"github.com/uplink-rpc/uplink/internal/lab/worldbench"
)

// sharedRecording is the recording of a world in the repository.
const sharedRecording = "testdata/traces/cubes_delta_data_2000.bin.gz"

// worldFlags are the flags of bench-world.
type worldFlags struct {
	players, objects, ticks int
	minRTT, maxRTT          time.Duration
	loss                    float64
	seed                    uint64
	hostile, json           bool
}

func newBenchWorldCommand() *cobra.Command {
	var o worldFlags
	cmd := &cobra.Command{
		Use:   "bench-world [FILE]",
		Short: "Measure what a world costs a server with many players",
		Long: `bench-world replicates a recorded world of 901 cubes at 60 Hz to many players, by one core, and measures coding,
encryption and sending. The players' links are simulated: their round-trip times are spread evenly over a range, and
snapshots and acks get lost. The datagrams are sent by real sessions over loopback. FILE is a recording that
bench-snapshots reads; the default is the repository's own.

With --objects the world is a plain with that many objects in 20 by 20 cells. One in ten moves, and each player sees the
cells around it. With --hostile there are 22 more clients: one acks nothing, one stalls for ten seconds at a time, ten
ack everything, and ten keep to old baselines.`,
		Example: `  uplink bench-world --players 1000
  uplink bench-world --players 1000 --objects 10000 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: checked(o.check, func(cmd *cobra.Command, args []string) error {
			path := sharedRecording
			if len(args) > 0 {
				path = args[0]
			}
			r, err := o.run(cmd, path)
			if err != nil {
				return err
			}
			return emit(cmd.OutOrStdout(), o.json, []*worldbench.Result{r}, func(b *strings.Builder) { writeWorldTable(b, r) })
		}),
	}
	f := cmd.Flags()
	f.IntVar(&o.players, "players", 64, "number of players, up to 10000")
	f.IntVar(&o.objects, "objects", 0, "number of objects of a simulated world, up to 65536")
	f.IntVar(&o.ticks, "ticks", 750, "number of measured ticks, after 150 others")
	f.DurationVar(&o.minRTT, "min-rtt", 20*time.Millisecond, "minimum round-trip time")
	f.DurationVar(&o.maxRTT, "max-rtt", 200*time.Millisecond, "maximum round-trip time, up to 1s")
	f.Float64Var(&o.loss, "loss", 0.02, "loss of snapshots, and of acks: a share of 0 to 1")
	f.Uint64Var(&o.seed, "seed", 1, "random seed")
	f.BoolVar(&o.hostile, "hostile", false, "add hostile clients")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return cmd
}

func (o *worldFlags) check() error {
	switch {
	case o.players < 1 || o.players > 10_000:
		return fmt.Errorf("--players %d: want 1 to 10000", o.players)
	case o.objects < 0 || o.objects > 1<<16:
		return fmt.Errorf("--objects %d: want up to 65536", o.objects)
	case o.ticks < 1 || o.ticks > 100_000:
		return fmt.Errorf("--ticks %d: want 1 to 100000", o.ticks)
	case o.minRTT < 0 || o.maxRTT < o.minRTT || o.maxRTT > time.Second:
		return fmt.Errorf("--min-rtt %v and --max-rtt %v: want 0s to 1s in this order", o.minRTT, o.maxRTT)
	case !(o.loss >= 0 && o.loss < 1):
		return fmt.Errorf("--loss %v: want a share of 0 to 1", o.loss)
	}
	return nil
}

func (o *worldFlags) run(cmd *cobra.Command, path string) (*worldbench.Result, error) {
	cfg := worldbench.Config{
		Players: o.players, Ticks: o.ticks, MinRTT: o.minRTT, MaxRTT: o.maxRTT, Loss: o.loss, Seed: o.seed,
		Hostile: o.hostile, Sessions: true, PerPlayer: true,
	}
	var err error
	if o.objects > 0 {
		cfg.Scene, err = worldbench.NewPlain(o.objects, o.players, o.seed)
	} else {
		var frames []cubes.Frame
		if frames, err = cubes.Load(path); err == nil {
			cfg.Scene, err = worldbench.NewRecording(frames)
		}
	}
	if err != nil {
		return nil, err
	}
	p := newProgress(cmd.ErrOrStderr())
	defer p.clear()
	cfg.Progress = func(done float64) { p.show("bench-world", done) }
	return worldbench.Run(cfg)
}

func writeWorldTable(b *strings.Builder, r *worldbench.Result) {
	us := func(ns float64) string { return fmt.Sprintf("%.1f us", ns/1e3) }
	lines := [][]string{
		{"", "", ""},
		{"quantize", us(r.QuantizeNs), "all objects of a tick"},
		{"encode", us(r.EncodeNs), fmt.Sprintf("all coding, learning and messages of a tick; %.1f encodings", r.EncodesPerTick)},
		{"send", us(r.SendNs), fmt.Sprintf("encryption and sending; %s for the same datagrams by a loop that does nothing else", us(r.BareSendNs))},
		{"tick", us(r.TickNs), "the sum"},
		{"snapshot", fmt.Sprintf("%.1f bytes", r.SnapshotBytes), "mean message to a player"},
		{"stream", fmt.Sprintf("%.0f bytes", r.BytesPerPlayer), "heap of a player's stream"},
		{"session", fmt.Sprintf("%.0f bytes", r.BytesPerSession), "heap of a player's session and stream"},
		{"mismatches", fmt.Sprint(r.Mismatches), fmt.Sprintf("of %d decoded messages with %d objects (must be 0)", r.Decoded, r.DecodedObjects)},
	}
	if r.PerPlayerCodingNs > 0 {
		lines = append(lines,
			[]string{"per player", us(r.PerPlayerCodingNs), fmt.Sprintf("coding with models per player, measured with %d of them", r.PerPlayerSample)},
			[]string{"", fmt.Sprintf("%.1f bytes", r.PerPlayerSnapshotBytes), "its mean snapshot"})
	}
	fmt.Fprintf(b, "%d players, %d objects\n\n", r.Players, r.Objects)
	table.Write(b, lines[1:])
}
