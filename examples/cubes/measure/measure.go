// Package measure compares ways down on scripted runs, in virtual time.
package measure

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/uplink-rpc/uplink/examples/cubes/game"
	"github.com/uplink-rpc/uplink/examples/cubes/script"
	"github.com/uplink-rpc/uplink/examples/cubes/session"
	"github.com/uplink-rpc/uplink/examples/cubes/way"
	"github.com/uplink-rpc/uplink/examples/cubes/world"
)

// Config says what is measured.
type Config struct {
	World world.Params
	Link  session.Link
	// Time is how long a run is, without Warmup, which is not counted.
	Time, Warmup time.Duration
	// Seed chooses the inputs of the first of Runs, and what its link does; those of the others follow it.
	Seed uint64
	Runs int
	// Budgets are in kbit/s.
	Budgets []int
}

// Form is a way down with its options.
type Form struct {
	Name    string
	Way     way.Kind
	Options way.Options
	// Fixed has the form measured once, without a budget.
	Fixed bool
}

// Forms are those that are compared. Rates of snapshots are the highest that keep to a budget most of the time.
func Forms() []Form {
	return []Form{
		{Name: "full snapshots", Way: way.Full, Options: way.Options{Rate: 10}, Fixed: true},
		{Name: "snapshots", Way: way.Snapshots},
		{Name: "state", Way: way.State},
		{Name: "state, no delta", Way: way.State, Options: way.Options{NoDelta: true}},
		{Name: "state, not rounded", Way: way.State, Options: way.Options{NoRound: true}},
		{Name: "state, not smoothed", Way: way.State, Options: way.Options{NoSmooth: true}},
	}
}

// rate is how many messages a second a form sends within a budget.
func (f *Form) rate(kbits int) int {
	switch {
	case f.Options.Rate > 0:
		return f.Options.Rate
	case f.Way != way.Snapshots || kbits >= 120:
		return game.Rate
	}
	return 30
}

// Result is what one form did in one budget, in all runs.
type Result struct {
	Form   string
	Budget int // kbit/s; 0 is none
	Rate   int
	session.Meter
}

// Run measures all forms in all budgets. Inputs are the same for all: those of a script that plays where nothing is
// rounded.
func Run(cfg Config) ([]*Result, error) {
	var all []*Result
	for range max(1, cfg.Runs) {
		results, err := once(cfg)
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

// once is one run of all.
func once(cfg Config) ([]*Result, error) {
	inputs, err := record(cfg)
	if err != nil {
		return nil, err
	}
	var results []*Result
	var forms []Form
	for _, f := range Forms() {
		budgets := cfg.Budgets
		if f.Fixed {
			budgets = []int{0}
		}
		for _, kbits := range budgets {
			results = append(results, &Result{Form: f.Name, Budget: kbits, Rate: f.rate(kbits)})
			forms = append(forms, f)
		}
	}
	errs := make([]error, len(results))
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, r := range results {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			if err := r.run(cfg, forms[i], inputs); err != nil {
				errs[i] = fmt.Errorf("%s in %d kbit/s: %w", r.Form, r.Budget, err)
			}
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// record plays the script.
func record(cfg Config) ([]world.Input, error) {
	sim, err := game.NewSimulation(cfg.World)
	if err != nil {
		return nil, err
	}
	steer := script.New(cfg.Seed, script.Reach)
	inputs := make([]world.Input, int((cfg.Warmup+cfg.Time)/game.Tick))
	for i := range inputs {
		inputs[i] = steer.Next(sim.Bodies[0].Position)
		if err := sim.Step(inputs[i]); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

func (r *Result) run(cfg Config, f Form, inputs []world.Input) error {
	o := f.Options
	o.Rate, o.Budget, o.Jitter, o.Loss = r.Rate, r.Budget*1000, cfg.Link.Jitter, cfg.Link.Loss
	s, err := session.New(session.Config{World: cfg.World, Way: f.Way, Options: o, Link: cfg.Link})
	if err != nil {
		return err
	}
	for i, in := range inputs {
		if game.Time(i) == cfg.Warmup {
			s.Meter.Reset()
		}
		if err := s.Tick(in); err != nil {
			return err
		}
	}
	r.Meter = s.Meter
	return nil
}
