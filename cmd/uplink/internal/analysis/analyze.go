// Package analysis reports how many bits each field of a recorded trace takes, how other predictors
// compare, and the effect of other resolutions, rates and links.
package analysis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// adaptive returns a config for the adaptive codec that measures no times. Its progress adds the
// given name.
func adaptive(cfg bench.Config, name string) bench.Config {
	cfg.Schemes, cfg.Untimed = []string{rpcdelta.Adaptive.String()}, true
	show := cfg.Progress
	cfg.Progress = func(what string, done float64) {
		if show != nil {
			show(name+" "+what, done)
		}
	}
	return cfg
}

// describe returns the simulated network of a run as text: the link with its seed or, if it is set,
// the fixed distance to the baseline.
func describe(cfg *bench.Config) string {
	if cfg.Distance != 0 {
		return cfg.String()
	}
	return fmt.Sprintf("%v, seed %d", cfg, cfg.Link.Seed)
}

// Run analyzes a trace with the adaptive codec. If ctx is done, it returns the context's error. It
// repeatedly calls cfg.Progress with the current step and the completed share of it.
func Run(ctx context.Context, t *trace.Trace, cfg bench.Config) (*Report, error) {
	cfg = adaptive(cfg, t.Name)
	b := cfg
	b.Fields = true
	b.Progress = func(_ string, done float64) { cfg.Progress("coding", done) }
	result, err := bench.Run(ctx, t, b)
	if err != nil {
		return nil, err
	}
	r := &Report{Trace: t.Name, Frames: len(t.Frames), RateHz: t.Schema.RateHz(), Run: describe(&cfg)}
	r.take(t.Schema, result.Codecs[0].Profile)
	m, err := newMoments(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	if err := r.price(t, m, func(done float64) { cfg.Progress("floor", done) }); err != nil {
		return nil, err
	}
	rows := rowsOf(t)
	for i, f := range fieldsOf(t.Schema) {
		if !f.predicted() {
			continue
		}
		for k := range f.components() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			cfg.Progress("predicting "+f.Name, float64(k)/float64(f.components()))
			r.Fields[i].Components[k].Predictors = try(rows, f, k, m)
		}
	}
	return r, nil
}

func (r *Report) take(s *schema.Schema, p *rpcdelta.Profile) {
	frames := float64(max(p.Frames, 1))
	r.FullBits, r.HeaderBits, r.PayloadBits = float64(p.FullBits)/frames, float64(p.HeaderBits)/frames, p.PayloadBits/frames
	r.CountBits, r.RoundingBits = p.CountBits/frames, p.RoundingBits/frames
	for i := range p.Fields {
		f := &p.Fields[i]
		out := Field{Name: f.Name, Kind: string(f.Kind), FullBits: float64(f.FullBits) / frames, Bits: f.Bits / frames, FlagBits: f.FlagBits / frames}
		names := componentNames(&s.Fields()[i], len(f.Components))
		for k := range f.Components {
			out.Components = append(out.Components, component(names[k], &f.Components[k], p))
		}
		r.Fields = append(r.Fields, out)
	}
}

func component(name string, c *rpcdelta.ComponentProfile, p *rpcdelta.Profile) Component {
	out := Component{Name: name, Bits: c.Bits / float64(max(p.Frames, 1)), Held: float64(c.Held) / float64(max(p.Coded, 1))}
	residuals := uint64(0)
	for _, n := range c.Residuals {
		residuals += n
	}
	out.Zeros = float64(c.Residuals[0]) / float64(max(residuals, 1))
	for i, n := range c.Predictors {
		if n > 0 {
			out.Used = append(out.Used, Share{rpcdelta.PredictorName(i), float64(n) / float64(p.Coded-c.Held)})
		}
	}
	slices.SortStableFunc(out.Used, func(a, b Share) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// componentNames returns the names of a field's columns if each component has one, otherwise
// numbers.
func componentNames(f *schema.Field, n int) []string {
	out := make([]string, n)
	for k := range out {
		switch {
		case len(f.Columns) == n && f.Kind != schema.KindUnitVec:
			out[k] = f.Columns[k]
		case (f.Kind == schema.KindVec2 || f.Kind == schema.KindVec3) && n <= 3:
			out[k] = f.Name + "." + "xyz"[k:k+1]
		case n == 1:
			out[k] = f.Name
		default:
			out[k] = fmt.Sprintf("%s.%d", f.Name, k+1)
		}
	}
	return out
}

func (r *Report) price(t *trace.Trace, m *moments, progress func(done float64)) error {
	var ages []int
	for i, x := range m.of {
		if x.base >= 0 {
			ages = append(ages, i-x.base)
		}
	}
	if len(ages) == 0 {
		return nil
	}
	slices.Sort(ages)
	distance := ages[len(ages)/2]
	if len(t.Frames) < minFrames(distance) {
		return nil
	}
	bills, err := Floor(t, distance, progress)
	if err != nil {
		return err
	}
	r.FloorDistance = distance
	for _, b := range bills {
		i := slices.IndexFunc(r.Fields, func(f Field) bool { return f.Name == b.Field })
		r.Fields[i].FloorBits = new(min(b.Flags+b.Values, r.Fields[i].Bits))
	}
	return nil
}

// try predicts component k of f with each predictor in all frames that have a baseline, from the
// values that both ends know at that time. It returns all predictors, the cheapest first.
func try(rows [][]float64, f *field, k int, m *moments) []Predictor {
	names := f.predictors()
	n, width := len(m.of), len(names)-1
	codes := make([]*ideal, len(names))
	errors := make([][]float64, len(names)) // errors of each predictor, by frame
	for i := range names {
		codes[i], errors[i] = newIdeal(), make([]float64, n)
	}
	var seen flags
	contexts := make([]int, n)
	fit := newSquares(width - 1) // features of all predictors except hold, which would add nothing
	offsets, ys := make([]float64, n*width), make([]float64, n)
	bits := make([]float64, len(names))
	done, learned := 0, 0
	for i, x := range m.of {
		if x.base < 0 {
			continue
		}
		for ; learned <= x.base; learned++ {
			if !m.known[learned] || m.of[learned].base < 0 {
				continue
			}
			held := ys[learned] == 0
			seen.learn(contexts[learned], held)
			for j, c := range codes {
				if !held || !f.flagged() {
					c.learn(errors[j][learned])
				}
			}
			fit.learn(offsets[learned*width+1:][:width-1], ys[learned])
		}
		v := view{f, rows, i, x}
		to := offsets[i*width : i*width : (i+1)*width]
		to, ys[i] = v.offsets(k, to)
		contexts[i] = v.context(k)
		flag, held := 0.0, ys[i] == 0 && f.flagged()
		if f.flagged() {
			flag = seen.bits(contexts[i], held)
		}
		for j := range names {
			var p float64
			if j < width {
				p = to[j]
			} else {
				p = fit.predict(to[1:])
			}
			e := ys[i] - math.Round(p)
			if f.Kind != schema.KindQuat {
				e = f.wrap(k, e)
			}
			errors[j][i] = e
			bits[j] += flag
			if !held {
				bits[j] += codes[j].bits(e)
			}
		}
		done++
	}
	out := make([]Predictor, len(names))
	for j, name := range names {
		e := make([]float64, 0, done)
		for i, x := range m.of {
			if x.base >= 0 {
				e = append(e, errors[j][i])
			}
		}
		out[j] = Predictor{Name: name, Bits: bits[j] / float64(max(done, 1)), Stats: describeErrors(e)}
	}
	slices.SortStableFunc(out, func(a, b Predictor) int { return cmp.Compare(a.Bits, b.Bits) })
	return out
}
