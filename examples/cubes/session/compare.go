package session

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
	"github.com/uplink-rpc/uplink/internal/chart"
)

// CompareConfig is the configuration of Compare.
type CompareConfig struct {
	World world.Params
	Link  Link
	// Time is the length of a run without Warmup, which is not measured.
	Time, Warmup time.Duration
	// Seed is the seed of the inputs in the first of Runs. Each further run increments it and
	// Link.Seed.
	Seed uint64
	Runs int
	// Budgets are the bandwidths to compare, in kbit/s.
	Budgets []int
}

// Variant is a mode with its options.
type Variant struct {
	Name    string
	Mode    Mode
	Options Options
	// NoBudget variants are measured once, without a budget.
	NoBudget bool
}

// Variants returns the variants that Compare measures. The rate of snapshots is the highest one
// that stays within a budget most of the time.
func Variants() []Variant {
	return []Variant{
		{Name: "full snapshots", Mode: ModeFull, Options: Options{Rate: 10}, NoBudget: true},
		{Name: "snapshots", Mode: ModeSnapshots},
		{Name: "state", Mode: ModeState},
		{Name: "state, not rounded", Mode: ModeState, Options: Options{NoRound: true}},
		{Name: "state, not smoothed", Mode: ModeState, Options: Options{NoSmooth: true}},
	}
}

// rate returns the number of messages per second of a variant within a budget.
func (f *Variant) rate(kbits int) int {
	switch {
	case f.Options.Rate > 0:
		return f.Options.Rate
	case f.Mode != ModeSnapshots || kbits >= 120:
		return world.TickRate
	}
	return 30
}

// Result is the measurement of one variant with one budget, over all runs.
type Result struct {
	Variant string
	Budget  int // kbit/s; 0 means no limit
	Rate    int
	Meter
}

// Compare measures all variants with all budgets. The inputs are the same for all: those of a
// script that plays in a world without rounding.
func Compare(cfg CompareConfig) ([]*Result, error) {
	var all []*Result
	for range max(1, cfg.Runs) {
		results, err := compareOnce(cfg)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = results
		} else {
			for i, r := range results {
				all[i].Merge(&r.Meter)
			}
		}
		cfg.Seed++
		cfg.Link.Seed++
	}
	return all, nil
}

func compareOnce(cfg CompareConfig) ([]*Result, error) {
	inputs, err := recordInputs(cfg)
	if err != nil {
		return nil, err
	}
	var results []*Result
	var forms []Variant
	for _, f := range Variants() {
		budgets := cfg.Budgets
		if f.NoBudget {
			budgets = []int{0}
		}
		for _, kbits := range budgets {
			results = append(results, &Result{Variant: f.Name, Budget: kbits, Rate: f.rate(kbits)})
			forms = append(forms, f)
		}
	}
	errs := make([]error, len(results))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, r := range results {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := r.run(cfg, forms[i], inputs); err != nil {
				errs[i] = fmt.Errorf("%s in %d kbit/s: %w", r.Variant, r.Budget, err)
			}
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

func recordInputs(cfg CompareConfig) ([]world.Input, error) {
	sim, err := world.NewSimulation(cfg.World)
	if err != nil {
		return nil, err
	}
	steer := world.NewScript(cfg.Seed, world.ScriptReach)
	inputs := make([]world.Input, int((cfg.Warmup+cfg.Time)/world.Tick))
	for i := range inputs {
		inputs[i] = steer.Next(sim.Bodies[0].Position)
		if err := sim.Step(inputs[i]); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

func (r *Result) run(cfg CompareConfig, f Variant, inputs []world.Input) error {
	o := f.Options
	o.Rate, o.Budget, o.Jitter, o.Loss = r.Rate, r.Budget*1000, cfg.Link.Jitter, cfg.Link.Loss
	s, err := New(Config{World: cfg.World, Mode: f.Mode, Options: o, Link: cfg.Link})
	if err != nil {
		return err
	}
	for i, in := range inputs {
		if world.TickTime(i) == cfg.Warmup {
			s.Meter.Reset()
		}
		if err := s.Tick(in); err != nil {
			return err
		}
	}
	r.Meter = s.Meter
	return nil
}

// Distribution is the distribution of the numbers added to it. Mean and maximum are exact;
// quantiles are estimated from a sample.
type Distribution struct {
	Count   int
	Sum     float64
	Max     float64
	samples []float64
	every   int
}

const maxSamples = 1 << 18

// Add adds a number.
func (d *Distribution) Add(v float64) {
	d.every = max(1, d.every)
	if d.Count%d.every == 0 {
		if len(d.samples) >= maxSamples {
			d.samples = half(d.samples)
			d.every *= 2
		}
		d.samples = append(d.samples, v)
	}
	d.Count++
	d.Sum += v
	d.Max = max(d.Max, v)
}

// Merge adds all numbers of another distribution.
func (d *Distribution) Merge(o *Distribution) {
	samples := o.samples
	for every := max(1, o.every); every < d.every; every *= 2 {
		samples = half(samples)
	}
	for d.every = max(1, d.every); d.every < o.every; d.every *= 2 {
		d.samples = half(d.samples)
	}
	d.samples = append(d.samples, samples...)
	d.Count, d.Sum, d.Max = d.Count+o.Count, d.Sum+o.Sum, max(d.Max, o.Max)
}

func half(v []float64) (out []float64) {
	for i := 0; i < len(v); i += 2 {
		out = append(out, v[i])
	}
	return out
}

// Mean returns the mean, or 0 if there are no numbers.
func (d *Distribution) Mean() float64 { return d.Sum / float64(max(1, d.Count)) }

// Quantile returns the number below which a fraction of the numbers lie, or 0 if there are no
// numbers.
func (d *Distribution) Quantile(fraction float64) float64 {
	if len(d.samples) == 0 {
		return 0
	}
	sorted := slices.Clone(d.samples)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(fraction*float64(len(sorted))))]
}

// WriteTable writes results as a Markdown table.
func WriteTable(w io.Writer, results []*Result) {
	fmt.Fprintln(w, "| budget | mode | rate | kbit/s | error mean | 99 % | largest | turn mean | 99 % | largest | pops/min | updates/s | wait | behind |")
	fmt.Fprintln(w, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	const cm = 100
	for _, r := range results {
		budget := "none"
		if r.Budget > 0 {
			budget = fmt.Sprint(r.Budget)
		}
		p, t := &r.Position, &r.Turn
		fmt.Fprintf(w, "| %s | %s | %d | %.1f | %.2f cm | %.1f cm | %.0f cm | %.2f° | %.1f° | %.0f° | %.0f | %.0f | %.2f s | %.0f ms |\n",
			budget, r.Variant, r.Rate, r.Kbits(), cm*p.Mean(), cm*p.Quantile(0.99), cm*p.Max, t.Mean(), t.Quantile(0.99), t.Max,
			r.PopsPerMinute(), float64(r.Updates)/r.Seconds(), r.LongestWait().Seconds(), r.MeanDelay().Seconds()*1000)
	}
}

// Figure returns a chart of the pops of each variant by budget. There are at least two budgets.
func Figure(results []*Result, budgets []int) *chart.Chart {
	c := &chart.Chart{Title: "Pops a minute by budget: cubes that jump over 5 cm in a frame", XUnit: "kbit/s", YUnit: "a minute"}
	for _, b := range budgets {
		c.X = append(c.X, float64(b))
	}
	for _, f := range Variants() {
		if f.NoBudget {
			continue
		}
		line := chart.Line{Name: f.Name}
		for _, b := range budgets {
			for _, r := range results {
				if r.Variant == f.Name && r.Budget == b {
					line.Y = append(line.Y, r.PopsPerMinute())
				}
			}
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}
