// Package tune proposes a schema and stream settings for an error bound and a link.
package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/uplink-rpc/uplink/cmd/uplink/internal/analysis"
	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Config contains the requirements, and the link with its ack rate.
type Config struct {
	bench.Config
	Bounds []Bound
	// Units are the units of fields whose column names do not contain them.
	Units map[string]string
	// Delivery is the required share of frames that arrive in time.
	Delivery float64
}

// Validate returns an error that names an invalid flag.
func (c *Config) Validate() error {
	if !(c.Delivery >= rpcdelta.MinDelivery && c.Delivery <= rpcdelta.MaxDelivery) {
		return fmt.Errorf("--delivery %g: want %g to %g", c.Delivery, rpcdelta.MinDelivery, rpcdelta.MaxDelivery)
	}
	for name, u := range c.Units {
		if _, known := unitOf(u); !known {
			return fmt.Errorf("--unit %s=%s: there are %s", name, u, Units())
		}
	}
	b := c.Config
	b.Schemes, b.Ring = []string{rpcdelta.Adaptive.String()}, rpcdelta.DefaultRing
	return b.Validate()
}

// Step is the result of one change.
type Step struct {
	What string `json:"what"`
	analysis.Cost
}

// Kept compares a bound with the measured error, in the unit of the field's columns or in degrees.
type Kept struct {
	Field string  `json:"field"`
	Bound float64 `json:"bound"`
	// Measured is the largest error in the recordings.
	Measured float64 `json:"measured"`
}

// Result is the proposal.
type Result struct {
	Steps []Step `json:"steps"`
	Kept  []Kept `json:"kept"`
	// Redundancy and Ring are values of rpcdelta.EncoderConfig.
	Redundancy int            `json:"redundancy"`
	Ring       int            `json:"ring"`
	Schema     *schema.Schema `json:"-"`
}

type tuner struct {
	ctx        context.Context
	cfg        Config
	recordings []*analysis.Recording
	fields     []schema.Field
	ring       int
	redundancy int
	result     Result
	done       int
}

// Run tunes the common schema of recordings. If ctx is done, it returns the context's error.
func Run(ctx context.Context, recordings []*analysis.Recording, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(recordings) == 0 {
		return nil, errors.New("there is nothing to tune for: want a recording")
	}
	first := recordings[0].Schema
	for _, r := range recordings[1:] {
		if r.Schema.Fingerprint() != first.Fingerprint() {
			return nil, fmt.Errorf("%s: its schema is another one than that of %s: tune each alone", r.Name, recordings[0].Name)
		}
	}
	t := &tuner{ctx: ctx, cfg: cfg, recordings: recordings, fields: slices.Clone(first.Fields()), ring: rpcdelta.DefaultRing}
	if err := t.step("as the schema has it"); err != nil {
		return nil, err
	}
	for _, stage := range []func() error{t.tighten, t.link, t.chooseRedundancy, t.chooseRing, t.finish} {
		if err := stage(); err != nil {
			return nil, err
		}
	}
	return &t.result, nil
}

// sent returns a recording quantized with the current schema.
func (t *tuner) sent(r *analysis.Recording) (*analysis.Recording, error) {
	s, err := schema.New(r.Schema.RPC(), r.Schema.RateHz(), t.fields)
	if err != nil {
		return nil, err
	}
	return r.As(s, 1)
}

// cost measures the cost of all recordings with the current settings.
func (t *tuner) cost(what string) (c analysis.Cost, err error) {
	t.done++
	frames := 0.0
	for _, r := range t.recordings {
		if t.cfg.Progress != nil {
			t.cfg.Progress(what, 1-1/(1+float64(t.done)/12))
		}
		sent, err := t.sent(r)
		if err != nil {
			return c, err
		}
		cfg := t.cfg.Config
		cfg.Ring, cfg.Redundancy = t.ring, t.redundancy
		one, _, err := sent.Cost(t.ctx, cfg)
		if err != nil {
			return c, err
		}
		n := float64(len(sent.Frames))
		c.Bits += n * one.Bits
		c.Kbits += n * one.Kbits
		c.Delivered += n * one.Delivered
		frames += n
	}
	c.Bits, c.Kbits, c.Delivered = c.Bits/frames, c.Kbits/frames, c.Delivered/frames
	return c, nil
}

// step records an accepted change.
func (t *tuner) step(what string) error {
	c, err := t.cost(what)
	t.result.Steps = append(t.result.Steps, Step{what, c})
	return err
}

func (t *tuner) last() analysis.Cost { return t.result.Steps[len(t.result.Steps)-1].Cost }

// tighten fits resolutions to the bounds. If the recorded values of a field are within its bound,
// the field keeps its resolution unless another one is coarser and takes fewer bits. Values that
// are whole multiples of their resolution remain whole multiples.
func (t *tuner) tighten() error {
	for i := range t.cfg.Bounds {
		b := &t.cfg.Bounds[i]
		at := t.index(b.Field)
		if at < 0 {
			return fmt.Errorf("--error %s: %s has no such field; there are %s", b.Field, t.recordings[0].Schema.RPC(), names(t.fields))
		}
		f := &t.fields[at]
		limit, err := b.limit(f, t.cfg.Units[b.Field])
		if err != nil {
			return err
		}
		before := *f
		exact, err := t.roundingError(at)
		if err != nil {
			return err
		}
		if err := tighten(f, limit); err != nil {
			return err
		}
		if whole := exact <= before.Resolution*wholeSteps; whole && f.Resolution > before.Resolution {
			f.Resolution = math.Floor(f.Resolution/before.Resolution) * before.Resolution
		}
		if finer := f.Resolution < before.Resolution || f.Bits > before.Bits; finer && exact <= limit {
			*f = before
		}
		t.result.Kept = append(t.result.Kept, Kept{Field: b.Field, Bound: limit})
		what := fmt.Sprintf("%s: resolution %g, was %g", f.Name, f.Resolution, before.Resolution)
		if f.Resolution == 0 {
			what = fmt.Sprintf("%s: %d bits, was %d", f.Name, f.Bits, before.Bits)
		}
		if f.Resolution == before.Resolution && f.Bits == before.Bits {
			what = f.Name + ": fits its bound as it is"
		}
		c, err := t.cost(what)
		if err != nil {
			return err
		}
		if c.Bits > t.last().Bits && exact <= limit {
			*f, what, c = before, f.Name+": fits its bound as it is", t.last()
		}
		t.result.Steps = append(t.result.Steps, Step{what, c})
	}
	return nil
}

// wholeSteps is the maximum deviation from a whole multiple, as a share of a step.
const wholeSteps = 1e-6

// roundingError returns the largest rounding error of a field in the recordings, with the current
// schema.
func (t *tuner) roundingError(at int) (most float64, err error) {
	for _, r := range t.recordings {
		sent, err := t.sent(r)
		if err != nil {
			return 0, err
		}
		most = max(most, sent.RoundingError(at))
	}
	return most, nil
}

func (t *tuner) index(name string) int {
	return slices.IndexFunc(t.fields, func(f schema.Field) bool { return f.Name == name })
}

func names(fields []schema.Field) string {
	var all []string
	for i := range fields {
		all = append(all, fields[i].Name)
	}
	return strings.Join(all, ", ")
}

// worthwhile is the minimum saving of a change, as a share.
const worthwhile = .002

// link tries the velocities that the recordings suggest, and keeps those that save bits.
func (t *tuner) link() error {
	for _, l := range links(t.fields, t.recordings) {
		f := &t.fields[l.Field]
		if f.Velocity != "" || circular(t.fields, l.Field, l.Velocity) {
			continue // a better one was chosen before
		}
		what := fmt.Sprintf("%s: velocity %s", f.Name, t.fields[l.Velocity].Name)
		f.Velocity, f.VelocityScale = t.fields[l.Velocity].Name, l.Near
		c, err := t.cost(what)
		if err != nil {
			return err
		}
		if l.Scale != l.Near {
			f.VelocityScale = l.Scale
			exact, err := t.cost(what)
			if err != nil {
				return err
			}
			if exact.Bits < c.Bits*(1-worthwhile) {
				c = exact
			} else {
				f.VelocityScale = l.Near
			}
		}
		if c.Bits > t.last().Bits*(1-worthwhile) {
			f.Velocity, f.VelocityScale = "", 0
			continue
		}
		if f.VelocityScale != 1 {
			what += fmt.Sprintf(" x %g", f.VelocityScale)
		}
		t.result.Steps = append(t.result.Steps, Step{what, c})
	}
	return nil
}

// chooseRedundancy selects the cheapest redundancy with the required delivery. If there is none, it
// selects the one with the best delivery.
func (t *tuner) chooseRedundancy() error {
	best, at := t.last(), t.redundancy
	for _, n := range []int{rpcdelta.RedundancyOff, 1, 2, 3, 4} {
		t.redundancy = n
		c, err := t.cost("redundancy")
		if err != nil {
			return err
		}
		enough := best.Delivered >= t.cfg.Delivery
		if c.Delivered >= t.cfg.Delivery && (!enough || c.Kbits < best.Kbits) || !enough && c.Delivered > best.Delivered {
			best, at = c, n
		}
	}
	if t.redundancy = at; at == rpcdelta.RedundancyAuto {
		return nil
	}
	what := fmt.Sprintf("redundancy %d, was auto", at)
	if at == rpcdelta.RedundancyOff {
		what = "redundancy off, was auto"
	}
	t.result.Steps = append(t.result.Steps, Step{what, best})
	return nil
}

// A smaller ring may increase bits and lost frames by these shares.
const (
	slack     = .005
	slackLost = .0005
)

// chooseRing selects the smallest ring with negligible additional cost.
func (t *tuner) chooseRing() error {
	best := t.last()
	for _, n := range []int{16, 24, 32, 48} {
		t.ring = n
		c, err := t.cost("ring")
		if err != nil {
			return err
		}
		if c.Bits <= best.Bits*(1+slack) && c.Delivered >= best.Delivered-slackLost {
			t.result.Steps = append(t.result.Steps, Step{fmt.Sprintf("ring %d, was %d", n, rpcdelta.DefaultRing), c})
			return nil
		}
	}
	t.ring = rpcdelta.DefaultRing
	return nil
}

func (t *tuner) finish() error {
	t.result.Ring, t.result.Redundancy = t.ring, t.redundancy
	for _, rec := range t.recordings {
		sent, err := t.sent(rec)
		if err != nil {
			return err
		}
		t.result.Schema = sent.Schema
		for i := range t.result.Kept {
			k := &t.result.Kept[i]
			k.Measured = max(k.Measured, sent.RoundingError(t.index(k.Field)))
		}
	}
	return nil
}
