// Command lab measures the figures in the documents, and draws their charts. Run it in this
// directory:
//
//	cd lab && go run . COMMAND [flags] [arguments]
//
// results.md contains the commands and their output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// recording is the recording of cubes that commands play by default, relative to this directory.
const recording = "../testdata/traces/cubes_delta_data_2000.bin.gz"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:               "lab",
		Short:             "Measures what the documents state, and draws their charts",
		SilenceErrors:     true, // main prints them
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(newAckRateCommand(), newClaimsCommand(), newCompareCommand(), newCompareWorldsCommand(), newDriftCommand(), newFiguresCommand(),
		newInterpolationCommand(), newJitterCommand(), newSnapshotsCommand(), newWorldCommand())
	return root
}

// emit writes results as JSON, an object or an array of several, or else as text.
func emit[T any](cmd *cobra.Command, asJSON bool, results []T, text func(b *strings.Builder)) error {
	if asJSON {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		if len(results) == 1 {
			return e.Encode(results[0])
		}
		return e.Encode(results)
	}
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// clock returns the time since it was made.
func clock() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
