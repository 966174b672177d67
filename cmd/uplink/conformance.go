package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/gopeer"
	"github.com/uplink-rpc/uplink/cmd/uplink/internal/conformance/protocol"
)

// peerCommand is the name of the hidden command that runs this implementation as a peer of
// conformance.
const peerCommand = "conformance-peer"

func newConformanceCommand() *cobra.Command {
	var o conformance.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "conformance [flags] -- COMMAND [ARGUMENT...]",
		Short: "Test another implementation of the protocols against this one",
		Long: `conformance starts COMMAND, another implementation, and tests each of its layers against this one: random schemas,
frames, objects and losses, and damaged input. COMMAND reads requests from its standard input and writes answers to its
standard output, one per line; docs/spec/conformance.md describes them.

It prints a table with the checks and failures of each layer, and the first failures. The exit code is 1 if there are
any. The same --seed repeats a test.`,
		Example: `  uplink conformance -- ./my-implementation --conformance
  uplink conformance --layers values,rle --seed 7 -- ./my-implementation --conformance
  uplink conformance -- uplink conformance-peer`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("conformance: which program? Name it after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, layer := range o.Layers {
				if !slices.Contains(protocol.Layers(), layer) {
					return usageError{fmt.Errorf("--layers %q: want some of %s", layer, strings.Join(protocol.Layers(), ", "))}
				}
			}
			if o.Frames < 1 || o.Frames > 1_000_000 || o.Schemas < 1 || o.Schemas > 100_000 {
				return usageError{errors.New("--frames must be 1 to 1000000, --schemas 1 to 100000")}
			}
			return runConformance(cmd, args, &o, asJSON)
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "seed of everything random")
	f.StringSliceVar(&o.Layers, "layers", nil, "comma-separated layers; default all: "+strings.Join(protocol.Layers(), ", "))
	f.IntVar(&o.Frames, "frames", 400, "frames, snapshots or packets of each sequence")
	f.IntVar(&o.Schemas, "schemas", 12, "random schemas or worlds of each layer")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON, and nothing else")
	return c
}

func runConformance(cmd *cobra.Command, command []string, o *conformance.Options, asJSON bool) (err error) {
	peer, err := conformance.Start(cmd.Context(), command, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.Close()) }()
	status := newLine(cmd.ErrOrStderr())
	var done atomic.Int64
	stop := status.tick(func(elapsed time.Duration) string { return fmt.Sprintf("%v, %d rows tested", elapsed, done.Load()) })
	o.Progress = func(conformance.Row) { done.Add(1) }
	report, err := conformance.Run(cmd.Context(), peer, *o)
	stop()
	switch {
	case len(report.Rows) == 0:
	case asJSON:
		err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(&report))
	default:
		err = errors.Join(err, report.Write(cmd.OutOrStdout()))
	}
	if err == nil && report.Failed() {
		err = fmt.Errorf("the peer %s does not conform; --seed %d repeats the test", report.Peer, o.Seed)
	}
	return err
}

// newConformancePeerCommand returns the hidden command that is a peer with this implementation.
func newConformancePeerCommand() *cobra.Command {
	var fault string
	c := &cobra.Command{
		Use: peerCommand, Hidden: true, Args: cobra.NoArgs,
		Short: "This implementation as a peer of conformance",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fault != "" && !slices.Contains(gopeer.Faults, fault) {
				return usageError{fmt.Errorf("--fault %q: want one of %s", fault, strings.Join(gopeer.Faults, ", "))}
			}
			return gopeer.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), fault)
		},
	}
	c.Flags().StringVar(&fault, "fault", "", "violate the specification in one layer: "+strings.Join(gopeer.Faults, ", "))
	return c
}
