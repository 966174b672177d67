package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/lab/internal/worldbench"
)

type worldOptions struct {
	cfg     worldbench.Config
	players []int
	objects int
	rtt     string
	json    bool
}

func newWorldCommand() *cobra.Command {
	o := worldOptions{cfg: worldbench.Config{Loss: .02, Seed: 1}}
	cmd := &cobra.Command{
		Use:   "world [FILE]",
		Short: "Measure the cost of sending a world to many players",
		Long: `world plays a recording of 901 cubes at 60 Hz to many players and measures the ticks of the server, on one
processor: quantizing, coding and learning, encryption, and sending over loopback by real sessions. FILE has the format
of snapshots; the default is ` + recording + `.

The clients are simulated; 2 % of datagrams and acks are lost. Round trips of the players are distributed evenly over
--rtt. Up to 16 clients decode each message and compare; their work is not measured. Neither is the first second.

With --hostile, two servers run in turns. One has 28 more clients: one stalls for ten seconds, one acks nothing, ten ack
what they have not received, ten pin old baselines, four join and leave all the time, one loses 10 %, and the acks of one
are late.`,
		Args: cobra.MaximumNArgs(1),
		RunE: o.run,
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.players, "players", []int{64}, "numbers of players")
	f.IntVar(&o.objects, "objects", 0, "play a plain of 20 by 20 cells with this many objects, of which 10 % move, instead of a recording: each player sees the cells around it")
	f.IntVar(&o.cfg.Ticks, "ticks", 1140, "number of measured ticks; a recording is played forward and backward")
	f.StringVar(&o.rtt, "rtt", "20ms-200ms", "round trips of the players: a time, or two of the form A-B")
	f.BoolVar(&o.cfg.Hostile, "hostile", false, "compare with a run with hostile clients")
	f.BoolVar(&o.json, "json", false, "print JSON: an object, or an array for several numbers of players")
	return cmd
}

func (o *worldOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.parse(); err != nil {
		return err
	}
	var err error
	if o.cfg.Scene, err = o.scene(args); err != nil {
		return err
	}
	var results []*worldbench.Result
	for _, n := range o.players {
		cfg := o.cfg
		cfg.Players, cfg.Clock = n, clock()
		cmd.PrintErrln(n, "players")
		r, err := worldbench.Run(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return emit(cmd, o.json, results, func(b *strings.Builder) { writeWorldTable(b, results) })
}

func (o *worldOptions) parse() error {
	first, last, span := strings.Cut(o.rtt, "-")
	if !span {
		last = first
	}
	var err error
	if o.cfg.MinRTT, err = time.ParseDuration(first); err == nil {
		o.cfg.MaxRTT, err = time.ParseDuration(last)
	}
	if err != nil {
		return fmt.Errorf("--rtt %s: want a time such as 33ms, or two such as 20ms-200ms", o.rtt)
	}
	for _, n := range o.players {
		cfg := o.cfg
		cfg.Players = n
		if err := cfg.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (o *worldOptions) scene(args []string) (worldbench.Scene, error) {
	if o.objects != 0 {
		return worldbench.Plain(o.objects, o.cfg.Seed)
	}
	path := recording
	if len(args) > 0 {
		path = args[0]
	}
	frames, err := cubes.Load(path)
	if err != nil {
		return nil, err
	}
	scene, err := worldbench.Recorded(frames)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return scene, nil
}

// worldRow is a line of the table: a figure, its unit or meaning, its format, and whether a run has
// it; nil means that all have.
type worldRow struct {
	name, meaning string
	value         func(r *worldbench.Result) string
	when          func(r *worldbench.Result) bool
}

func attacked(r *worldbench.Result) bool { return r.HostileEncodeRatio > 0 }

func microseconds(get func(r *worldbench.Result) float64) func(r *worldbench.Result) string {
	return func(r *worldbench.Result) string { return fmt.Sprintf("%.0f", get(r)/1e3) }
}

func figure(format string, get func(r *worldbench.Result) float64) func(r *worldbench.Result) string {
	return func(r *worldbench.Result) string { return fmt.Sprintf(format, get(r)) }
}

var worldRows = []worldRow{
	{"tick, us", "all of the following, choosing baselines and building messages", microseconds(func(r *worldbench.Result) float64 { return r.TickNs }), nil},
	{"quantizing, us", "from structs to integers, once for all players", microseconds(func(r *worldbench.Result) float64 { return r.QuantizeNs }), nil},
	{"coding, us", "all coding and learning", microseconds(func(r *worldbench.Result) float64 { return r.EncodeNs }), nil},
	{"sending, us", "encryption, and system calls", microseconds(func(r *worldbench.Result) float64 { return r.SendNs }), nil},
	{"bare send, us", "the same datagrams, encrypted and sent in batches without a server", microseconds(func(r *worldbench.Result) float64 { return r.BareSendNs }), nil},
	{"acks, us", "handling the acks of a tick; not a part of the tick", microseconds(func(r *worldbench.Result) float64 { return r.AcksNs }), nil},
	{"encodings", "snapshots coded per tick, at most 8 against baselines", figure("%.2f", func(r *worldbench.Result) float64 { return r.EncodesPerTick }), nil},
	{"bytes/player", "heap of a player's stream", figure("%.0f", func(r *worldbench.Result) float64 { return r.BytesPerPlayer }), nil},
	{"bytes/session", "heap of a session with an idle reliable channel, and its stream", figure("%.0f", func(r *worldbench.Result) float64 { return r.BytesPerSession }), nil},
	{"bytes/snapshot", "mean size of a payload", figure("%.1f", func(r *worldbench.Result) float64 { return r.SnapshotBytes }), nil},
	{"wrong", "messages that clients decoded to another world (must be 0)", figure("%.0f", func(r *worldbench.Result) float64 { return float64(r.Mismatches) }), nil},
	{"hostile: coding", "with hostile clients, relative to the run without them", figure("%.3f", func(r *worldbench.Result) float64 { return r.HostileEncodeRatio }), attacked},
	{"hostile: bytes", "those of honest players, likewise", figure("%.3f", func(r *worldbench.Result) float64 { return r.HostileBytesRatio }), attacked},
}

func writeWorldTable(b *strings.Builder, results []*worldbench.Result) {
	first := results[0]
	fmt.Fprintf(b, "%d objects at 60 Hz, %d ticks, round trips of %d to %d ms, %g %% loss, seed %d; one processor\n\n",
		first.Objects, first.Ticks, first.RTTMs[0], first.RTTMs[1], 100*first.Loss, first.Seed)
	head := []string{"players"}
	for _, r := range results {
		head = append(head, fmt.Sprint(r.Players))
	}
	rows, notes := [][]string{head}, [][]string{}
	for _, row := range worldRows {
		if row.when != nil && !row.when(first) {
			continue
		}
		line := []string{row.name}
		for _, r := range results {
			line = append(line, row.value(r))
		}
		rows = append(rows, line)
		notes = append(notes, []string{row.name, row.meaning})
	}
	table.Write(b, rows)
	b.WriteString("\n")
	for _, n := range notes {
		fmt.Fprintf(b, "%-26s  %s\n", n[0], n[1])
	}
	b.WriteString("\nTimes are means of a tick without the slowest 5 %, on this machine under its current load.\n")
}
