package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/internal/lab/snapbench"
	"github.com/uplink-rpc/uplink/snapshot"
)

func newTrainSnapshotsCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "train-snapshots FILE...",
		Short: "Train the model of snapshots on recorded worlds",
		Long: `train-snapshots trains the parameters with which snapshots are coded on recordings of cubes, in the format that
bench-snapshots reads, and writes them to a file.`,
		Example: `  uplink train-snapshots -o snapshots.prior cubes1.bin.gz cubes2.bin.gz`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var recordings [][]*snapshot.Set
			for _, path := range args {
				frames, err := cubes.Load(path)
				if err != nil {
					return err
				}
				sets, err := snapbench.TrainingSets(frames)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				recordings = append(recordings, sets)
			}
			m, err := snapbench.Train(recordings)
			if err != nil {
				return err
			}
			b := m.Append(nil, snapshot.PriorSchema())
			if err := os.WriteFile(out, b, 0o644); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes\n", out, len(b))
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "snapshots.prior", "the file to write")
	return cmd
}
