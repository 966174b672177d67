package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/uplinktest/cubeset"
	"github.com/uplink-rpc/uplink/lab/internal/snapbench"
)

const snapshotNotes = `bytes  per frame sent, in whole bytes: the adaptive form with its header of 2 bytes, the packed forms without a header.
us     per frame, mean; depends on the load of the machine; -: not measured.
wrong  frames that decoded differently from what was sent (must be 0).
`

func newSnapshotsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "snapshots FILE",
		Short: "Measure the bytes of recorded worlds as snapshots",
		Long: `snapshots encodes a recording of 901 cubes at 60 Hz, each frame against the one 6 before it, decodes it and
compares. FILE, optionally compressed with gzip, has the format of the networked-physics data-compression challenge:
frames of 901 times eight little-endian 32-bit integers. Each row of bit packing adds a technique to the row above it.
The first two rows have velocities, which the recording lacks: central differences in steps of 1/32 m/s. One row encodes
each frame against frame 0, as before the first ack. One row runs over a link with 5 % loss of snapshots and acks
and 100 ms RTT, in virtual time. The last row has the messages of a world with areas, of which one has all objects.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := measureSnapshots(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, asJSON, []any{rows}, func(b *strings.Builder) { writeSnapshotTable(b, args[0], rows) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the rows as JSON")
	return cmd
}

func measureSnapshots(path string) ([]*snapbench.Row, error) {
	frames, err := cubes.Load(path)
	if err != nil {
		return nil, err
	}
	sets, err := cubeset.Of(frames)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(sets) <= snapbench.Distance {
		return nil, fmt.Errorf("%s: %d frames, want more than %d", path, len(sets), snapbench.Distance)
	}
	rows, err := snapbench.Packed(sets)
	if err != nil {
		return nil, err
	}
	for _, run := range []struct {
		form string
		link snapbench.Link
	}{
		{"adaptive", snapbench.Link{Up: snapbench.Distance}},
		{"adaptive, 5 % loss, 100 ms", snapbench.Link{Loss: .05, Down: 3, Up: 3, Seed: 1}},
	} {
		r, err := snapbench.Adaptive(run.form, sets, run.link, clock())
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	group, err := snapbench.Group("one group of a world with areas", sets, clock())
	if err != nil {
		return nil, err
	}
	return append(rows, group), nil
}

func writeSnapshotTable(b *strings.Builder, path string, rows []*snapbench.Row) {
	lines := [][]string{{"form", "bytes", "kbit/s", "encode us", "decode us", "delivered", "wrong"}}
	for _, r := range rows {
		times := []string{"-", "-"}
		if r.EncodeUs > 0 {
			times = table.Row("%.0f|%.0f", r.EncodeUs, r.DecodeUs)
		}
		line := append(table.Row("%s|%.1f|%.1f", r.Form, r.Bytes, r.Kbits), times...)
		lines = append(lines, append(line, table.Row("%d of %d|%d", r.Delivered, r.Frames, r.Wrong)...))
	}
	fmt.Fprintf(b, "%s: %d frames of %d cubes, each against the one %d before it\n\n", path, rows[0].Frames, cubes.Count, snapbench.Distance)
	table.Write(b, lines)
	b.WriteString("\n" + snapshotNotes)
}
