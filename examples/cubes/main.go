// Cubes simulates the world of the networked-physics articles with ODE. It serves a page that shows
// the world at both ends of a link, compares replication modes, and records runs.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := newRootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "cubes:", err)
		os.Exit(1)
	}
}

// newRootCommand returns the command line. Without a subcommand it serves the page.
func newRootCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "cubes",
		Short: "Shows and compares replication modes on a world of 901 cubes",
		Long: `cubes simulates the world of the networked-physics articles and serves a page on which you can play in it and
watch how each replication mode shows it to a client.`,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return serve(c.Context(), &o, c.OutOrStdout()) },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	o.addFlags(c)
	c.AddCommand(newRecordCommand(), newMeasureCommand())
	return c
}
