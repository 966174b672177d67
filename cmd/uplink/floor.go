package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/floor"
	"github.com/uplink-rpc/uplink/internal/lab/table"
	"github.com/uplink-rpc/uplink/rpcdelta"
)

func newFloorCommand() *cobra.Command {
	var schema string
	var distance int
	var causal, asJSON bool
	cmd := &cobra.Command{
		Use:   "floor TRACE",
		Short: "Estimate the fewest bits that a codec of this kind could need",
		Long: `floor fits predictors and noise models to a whole trace, including the frames after each frame, and prints the
bits per frame that remain. It is an estimate of what better learning could gain; see docs/codec.md.`,
		Example: `  uplink floor --distance 3 testdata/traces/rocketleague_solo_30hz.csv.gz
  uplink floor --distance 6 --causal testdata/traces/cubes_player_60hz.csv.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if distance < 1 || distance >= rpcdelta.MaxRing {
				return usageError{fmt.Errorf("--distance %d: want 1 to %d frames", distance, rpcdelta.MaxRing-1)}
			}
			t, err := loadTrace(args[0], schema)
			if err != nil {
				return err
			}
			bills, err := floor.Price(t, distance, causal, nil)
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(cmd.OutOrStdout(), bills)
			}
			rows := [][]string{{"field", "flags", "values", "both"}}
			add := func(b floor.Bill) {
				rows = append(rows, []string{b.Field, fmt.Sprintf("%.1f", b.Flags), fmt.Sprintf("%.1f", b.Values), fmt.Sprintf("%.1f", b.Flags+b.Values)})
			}
			total := floor.Bill{Field: "all"}
			for _, b := range bills {
				add(b)
				total.Flags += b.Flags
				total.Values += b.Values
			}
			add(total)
			var b strings.Builder
			table.Write(&b, rows)
			_, err = fmt.Fprint(cmd.OutOrStdout(), b.String())
			return err
		},
	}
	cmd.Flags().StringVar(&schema, schemaFlag, "", "schema file, instead of NAME.schema.json")
	cmd.Flags().IntVar(&distance, "distance", 6, "frames between a frame and its baseline")
	cmd.Flags().BoolVar(&causal, "causal", false, "fit weights to earlier frames only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the bits of each field as JSON")
	return cmd
}
