package session

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/world"
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
		{Name: "state, no delta", Mode: ModeState, Options: Options{NoDelta: true}},
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

// compareOnce measures one run of all variants.
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

// recordInputs returns the inputs of the script for one run.
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

// run runs a session of the variant f.
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
