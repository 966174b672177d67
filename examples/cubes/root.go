package main

import "github.com/spf13/cobra"

// root is the command line. Without a command it serves the page.
func root() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:           "cubes",
		Short:         "Shows and measures the ways down on a world of 901 cubes",
		Long:          "cubes simulates the networked-physics articles' world and serves a page on which to play in it, and to watch the ways down.",
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return serve(c.Context(), &o, c.OutOrStdout()) },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	o.addFlags(c)
	c.AddCommand(newRecordCommand(), newMeasureCommand())
	return c
}
