package analysis

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/table"
)

// Grid contains the values to combine.
type Grid struct {
	// Resolutions are factors on every field's step: 2 is twice as coarse.
	Resolutions []float64
	// Redundancies are values of rpcdelta.EncoderConfig.Redundancy.
	Redundancies []int
	// Losses are shares of lost datagrams in each direction, 0 to 1.
	Losses []float64
	// Rates are in calls per second. Each divides the rate of the trace. The default is the rate of
	// the trace, and half of it.
	Rates []float64
}

// Bounds of a grid.
const (
	maxCases      = 10_000
	maxResolution = 1 << 16
)

// Validate returns an error that names an invalid flag.
func (g *Grid) Validate() error {
	for _, f := range g.Resolutions {
		if !(f >= 1./maxResolution && f <= maxResolution) {
			return fmt.Errorf("--resolutions %g: want factors of 1/%d to %d", f, maxResolution, maxResolution)
		}
	}
	if n := len(g.Resolutions) * len(g.Redundancies) * len(g.Losses) * max(len(g.Rates), 2); n == 0 || n > maxCases {
		return fmt.Errorf("the grid has %d cases, want 1 to %d", n, maxCases)
	}
	return nil
}

// Case is one combination of a grid, with its result.
type Case struct {
	Resolution float64 `json:"resolution"`
	Redundancy int     `json:"redundancy"`
	Loss       float64 `json:"loss"`
	RateHz     float64 `json:"rate_hz"`
	Cost
	// Errors contains the errors of the quantized fields.
	Errors []Error `json:"errors"`
}

// Cost is the mean cost of recordings. Bits is the size of payload and header per sent frame. Kbits
// is the bandwidth of a client's datagrams with all headers, in kbit/s. The last field is the share
// of frames that arrived in time.
type Cost struct {
	Bits      float64 `json:"bits"`
	Kbits     float64 `json:"kbit_per_s"`
	Delivered float64 `json:"delivered"`
}

// Cost encodes a recording with the adaptive codec. It also returns which frames arrived.
func (r *Recording) Cost(ctx context.Context, cfg bench.Config) (c Cost, arrived []bool, err error) {
	cfg = adaptive(cfg, r.Name)
	cfg.Arrivals, cfg.Progress = true, nil
	result, err := bench.Run(ctx, r.Trace, cfg)
	if err != nil {
		return c, nil, err
	}
	counts := &result.Codecs[0]
	c = Cost{counts.PayloadBits + counts.HeaderBits, counts.UpKbits(result.RateHz), counts.DeliveredRatio}
	return c, counts.Arrived, nil
}

// Error describes the difference between the server's and the recorded value of a field, over all
// recorded rows. The server's value at a row is that of the newest received frame up to this row.
// Vectors and scalars have the unit of their columns; angles, rotations and directions are in
// degrees.
type Error struct {
	Field string  `json:"field"`
	Mean  float64 `json:"mean"`
	P99   float64 `json:"p99"`
}

// Outcome contains the cases of a trace.
type Outcome struct {
	Trace  string  `json:"trace"`
	Frames int     `json:"frames"`
	RateHz float64 `json:"rate_hz"`
	Run    string  `json:"run"`
	Cases  []Case  `json:"cases"`
}

// WhatIf runs all cases of a recording, some concurrently. The distance of cfg must be 0.
func WhatIf(ctx context.Context, r *Recording, g Grid, cfg bench.Config) (*Outcome, error) {
	cfg = adaptive(cfg, r.Name)
	out := &Outcome{Trace: r.Name, Frames: len(r.Frames), RateHz: r.Schema.RateHz(), Run: describe(&cfg)}
	rates := g.Rates
	if len(rates) == 0 {
		rates = []float64{out.RateHz, out.RateHz / 2}
	}
	for _, rate := range rates {
		for _, factor := range g.Resolutions {
			for _, loss := range g.Losses {
				for _, redundancy := range g.Redundancies {
					out.Cases = append(out.Cases, Case{Resolution: factor, Redundancy: redundancy, Loss: loss, RateHz: rate})
				}
			}
		}
	}
	var mu sync.Mutex // guards progress
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range out.Cases {
		group.Go(func() error {
			err := r.runCase(ctx, &out.Cases[i], cfg)
			mu.Lock()
			defer mu.Unlock()
			done++
			cfg.Progress("what if", float64(done)/float64(len(out.Cases)))
			return err
		})
	}
	return out, group.Wait()
}

func (r *Recording) runCase(ctx context.Context, c *Case, cfg bench.Config) error {
	stride := r.Schema.RateHz() / c.RateHz
	if !(stride >= 1 && math.Abs(stride-math.Round(stride)) < 1e-6) {
		return fmt.Errorf("--rates %g: %s has %g rows a second, which is no multiple of it", c.RateHz, r.Name, r.Schema.RateHz())
	}
	s, err := coarser(r.Schema, c.Resolution, c.RateHz)
	if err != nil {
		return err
	}
	sent, err := r.As(s, int(math.Round(stride)))
	if err != nil {
		return err
	}
	cfg.Link.Loss, cfg.Redundancy = c.Loss, c.Redundancy
	cost, arrived, err := sent.Cost(ctx, cfg)
	if err != nil {
		return err
	}
	c.Cost, c.Errors = cost, r.errors(sent, arrived, int(math.Round(stride)))
	return nil
}

// errors compares the recorded values with the frames that arrived.
func (r *Recording) errors(sent *Recording, arrived []bool, stride int) (out []Error) {
	for _, f := range fieldsOf(sent.Schema) {
		if !f.measured() {
			continue
		}
		var all []float64
		var have []float64 // newest values at the server
		for n := range r.Frames {
			if n%stride == 0 && arrived[n/stride] {
				have = sent.Schema.RestoreField(have[:0], &sent.Frames[n/stride], f.index)
			}
			if len(have) > 0 {
				all = append(all, Off(f.Kind, have, r.Values(n, f.index)))
			}
		}
		e := Error{Field: f.Name}
		if len(all) > 0 {
			slices.Sort(all)
			for _, v := range all {
				e.Mean += v / float64(len(all))
			}
			e.P99 = all[int(math.Ceil(.99*float64(len(all))))-1]
		}
		out = append(out, e)
	}
	return out
}

// Text returns the cases as a table with the errors of the given fields. redundancy formats a
// redundancy.
func (o *Outcome) Text(fields []string, redundancy func(int) string) [][]string {
	head := []string{"resolution", "rate", "loss", "redundancy", "bits", "kbit/s", "delivered"}
	for _, f := range fields {
		head = append(head, printable(f)+" mean", "99 %")
	}
	rows := [][]string{head}
	for _, c := range o.Cases {
		row := table.Row("x %g|%g Hz|%g %%|%s|%.1f|%.1f|%.2f %%",
			c.Resolution, c.RateHz, 100*c.Loss, redundancy(c.Redundancy), c.Bits, c.Kbits, 100*c.Delivered)
		for _, f := range fields {
			cells := []string{"-", "-"}
			if i := slices.IndexFunc(c.Errors, func(e Error) bool { return e.Field == f }); i >= 0 {
				cells = table.Row("%.4g|%.4g", c.Errors[i].Mean, c.Errors[i].P99)
			}
			row = append(row, cells...)
		}
		rows = append(rows, row)
	}
	return rows
}

// Fields returns the names of fields with errors.
func (r *Recording) Fields() (names []string) {
	for _, f := range fieldsOf(r.Schema) {
		if f.measured() {
			names = append(names, f.Name)
		}
	}
	return names
}

// CheckField returns an error if the field does not exist or has no errors.
func (r *Recording) CheckField(name string) error {
	if names := r.Fields(); !slices.Contains(names, name) {
		return fmt.Errorf("--errors %s: %s has no such field that is rounded; it has %s", name, r.Name, strings.Join(names, ", "))
	}
	return nil
}
