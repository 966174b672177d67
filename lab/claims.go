package main

import (
	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/lab/internal/claims"
	"github.com/uplink-rpc/uplink/lab/internal/figures"
)

func newClaimsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "claims",
		Short: "Compare the figures of README.md with what its commands print",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return claims.Check() },
	}
}

func newFiguresCommand() *cobra.Command {
	var match string
	cmd := &cobra.Command{
		Use:   "figures",
		Short: "Run the commands of results.md and update their results",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return figures.Update("results.md", match) },
	}
	cmd.Flags().StringVar(&match, "match", "", "run only commands that contain this text")
	return cmd
}
