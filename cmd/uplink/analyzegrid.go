package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/internal/lab/table"
)

// gridFlags are the axes of the grid, as they are written.
type gridFlags struct {
	resolutions, rates             []float64
	redundancies, losses, errorsOf []string
	grid                           analysis.Grid
}

// gridOnly make no sense without --what-if.
var gridOnly = []string{"resolutions", "rates", "redundancies", "losses", "errors"}

// fieldsShown is how many fields' errors the table has where none are named.
const fieldsShown = 3

func (g *gridFlags) add(f *pflag.FlagSet) {
	f.Float64SliceVar(&g.resolutions, "resolutions", []float64{1, 2, 4, 8}, "with --what-if: factors on every field's resolution")
	f.Float64SliceVar(&g.rates, "rates", nil, "with --what-if: calls a second, each a part of the trace's (default its own and half of it)")
	f.StringSliceVar(&g.redundancies, "redundancies", []string{"off", "auto"}, "with --what-if: as --redundancy has them")
	f.StringSliceVar(&g.losses, "losses", []string{"0", "5%", "10%"}, "with --what-if: shares of packets lost, each way")
	f.StringSliceVar(&g.errorsOf, "errors", nil, fmt.Sprintf("with --what-if: fields whose errors the table shows (default the first %d)", fieldsShown))
}

func (g *gridFlags) check(cmd *cobra.Command, o *analyzeOptions) error {
	if !o.whatIf {
		for _, name := range gridOnly {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s: want --what-if, whose grid it is of", name)
			}
		}
		return nil
	}
	for name, instead := range map[string]string{"loss": "losses", "redundancy": "redundancies"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: with --what-if it is --%s", name, instead)
		}
	}
	switch {
	case o.cfg.Distance != 0:
		return errors.New("--distance: --what-if is about links; leave one of them out")
	case o.html != "":
		return errors.New("--html: --what-if has a table or --json")
	}
	g.grid = analysis.Grid{Resolutions: g.resolutions, Rates: g.rates}
	for _, text := range g.redundancies {
		var r redundancy
		if err := r.Set(text); err != nil {
			return fmt.Errorf("--redundancies %q: %w", text, err)
		}
		g.grid.Redundancies = append(g.grid.Redundancies, int(r))
	}
	for _, text := range g.losses {
		share, err := simlink.ParseShare(text)
		if err != nil {
			return fmt.Errorf("--losses %q: %w", text, err)
		}
		g.grid.Losses = append(g.grid.Losses, share)
	}
	return g.grid.Validate()
}

func (o *analyzeOptions) runGrid(ctx context.Context, paths []string, stdout, stderr io.Writer) error {
	p := newProgress(stderr)
	defer p.clear()
	var outcomes []*analysis.Outcome
	var b strings.Builder
	var damaged error
	for _, path := range paths {
		r, err := loadRecording(path, o.schema)
		if r == nil {
			return err
		}
		damaged = errors.Join(damaged, err)
		shown := o.grid.errorsOf
		for _, name := range shown {
			if err := r.CheckField(name); err != nil {
				return err
			}
		}
		if len(shown) == 0 {
			shown = r.Fields()
			shown = shown[:min(len(shown), fieldsShown)]
		}
		cfg := o.cfg
		cfg.Progress = p.show
		out, err := analysis.WhatIf(ctx, r, o.grid.grid, cfg)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, out)
		fmt.Fprintf(&b, "%s: %d frames at %g Hz; round trip %v, jitter %v, acks at %g Hz\n\n", r.Name, out.Frames, out.RateHz, o.cfg.Link.RTT, o.cfg.Link.Jitter, o.cfg.AckHz)
		table.Write(&b, out.Text(shown, redundancyText))
		b.WriteByte('\n')
	}
	p.clear()
	b.WriteString(gridNotes)
	write := func() error {
		if o.json {
			return writeJSON(stdout, outcomes)
		}
		_, err := io.WriteString(stdout, b.String())
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return shownInPart(damaged)
}

const gridNotes = `bits   a sent frame, payload and header; kbit/s: of the client's datagrams, IP and UDP included.
errors of the newest frame that the server has, of those up to each recorded row, against what was recorded: vectors and
       scalars in the unit of their columns, angles, rotations and directions in degrees.
`

// redundancyText names a redundancy as its flag does.
func redundancyText(n int) string { return (*redundancy)(&n).String() }
