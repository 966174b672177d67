package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/table"
)

func newFloorCommand() *cobra.Command {
	var schema string
	var distance int
	var causal, asJSON bool
	cmd := &cobra.Command{
		Use:   "floor TRACE",
		Short: "Estimate the fewest bits that a codec of this kind could need",
		Long: `floor fits predictors and noise models to a whole trace, including the frames after each frame, and prints the
bits per frame that remain. It is an estimate of what better learning could gain; see docs/design/codec.md.`,
		Example: `  uplink floor --distance 3 testdata/traces/rocketleague_solo_30hz.csv.gz
  uplink floor --distance 6 --causal testdata/traces/cubes_player_60hz.csv.gz`,
		Args: oneArg,
		RunE: checked(func() error { return checkBaseline(distance) }, func(cmd *cobra.Command, args []string) error {
			t, err := loadTrace(args[0], schema)
			if err != nil {
				return err
			}
			bills, err := analysis.Floor(t, distance, causal, nil)
			if err != nil {
				return err
			}
			return emit(cmd.OutOrStdout(), asJSON, []any{bills}, func(b *strings.Builder) {
				rows, total := [][]string{{"field", "flags", "values", "both"}}, analysis.Bill{Field: "all"}
				for _, bill := range bills {
					total.Flags += bill.Flags
					total.Values += bill.Values
				}
				for _, bill := range append(bills, total) {
					rows = append(rows, table.Row("%s|%.1f|%.1f|%.1f", bill.Field, bill.Flags, bill.Values, bill.Flags+bill.Values))
				}
				table.Write(b, rows)
			})
		}),
	}
	cmd.Flags().StringVar(&schema, schemaFlag, "", "schema file, instead of NAME.schema.json")
	cmd.Flags().IntVar(&distance, "distance", 6, "frames between a frame and its baseline")
	cmd.Flags().BoolVar(&causal, "causal", false, "fit weights to earlier frames only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the bits of each field as JSON")
	return cmd
}
