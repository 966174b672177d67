package main

import "github.com/spf13/cobra"

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "cubes",
		Short:         "Shows and measures the ways down on a world of 901 cubes",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.AddCommand(newRecordCommand())
	return c
}
