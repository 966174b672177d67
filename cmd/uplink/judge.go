package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/table"
	"github.com/uplink-rpc/uplink/internal/trace"
)

// judge evaluates priors.
type judge struct {
	distance int // 0: use the link
	progress func(what string, done float64)
	json     bool
}

// beginning is the length of the first part of a trace, which is also measured separately.
const beginning = 10 * time.Second

// candidate is a prior to evaluate.
type candidate struct {
	name  string
	train *prior.TrainConfig // nil: the built-in prior
	blank bool               // trained on no traces
}

// contest compares candidates on traces.
type contest struct {
	title, notes string
	all          []candidate
	base         int // index of the candidate with which the last one is compared
	// split returns the part of trace i to code, and the traces to train with.
	split func(traces []*trace.Trace, i int) (*trace.Trace, []*trace.Trace)
}

var leaveOneOut = contest{
	title: "Each trace with priors trained on the other traces",
	base:  1,
	all: []candidate{
		{name: "untrained", train: &prior.TrainConfig{FromScratch: true}, blank: true},
		{name: "built-in"},
		{name: "generic", train: &prior.TrainConfig{FromScratch: true, Generic: true}},
		{name: "trained", train: &prior.TrainConfig{FromScratch: true}},
	},
	split: func(traces []*trace.Trace, i int) (*trace.Trace, []*trace.Trace) {
		return traces[i], slices.Delete(slices.Clone(traces), i, i+1)
	},
	notes: `untrained  initial curves for residuals and manual starts, before any training
built-in   the generic prior of this version; if it was trained on the trace, it has an advantage
generic    trained on the other traces from scratch, without models of single fields
trained    the same with models of single fields, for fields that the other traces have too
gain       of trained over built-in
`,
}

var halves = contest{
	title: "The second half of each trace, as a separate session, with priors trained on the first half",
	all: []candidate{
		{name: "built-in"},
		{name: "generic", train: &prior.TrainConfig{Generic: true}},
		{name: "trained", train: &prior.TrainConfig{}},
	},
	split: func(traces []*trace.Trace, i int) (*trace.Trace, []*trace.Trace) {
		front, back := *traces[i], *traces[i]
		half := len(front.Frames) / 2
		front.Frames, back.Frames = front.Frames[:half], back.Frames[half:]
		return &back, []*trace.Trace{&front}
	},
	notes: `built-in   the generic prior of this version
generic    refined by the first half, without models of single fields
trained    the same with models of single fields
gain       of trained over built-in
`,
}

func (j *judge) check(given bool) error {
	if given && j.distance == 0 {
		return fmt.Errorf("--distance 0: want at least 1 frame")
	}
	cfg := j.config()
	return cfg.Validate()
}

func (j *judge) config() bench.Config {
	return bench.Config{
		Schemes: []string{rpcdelta.Adaptive.String()}, Redundancy: rpcdelta.RedundancyOff, Distance: j.distance,
		Link: simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1},
		Ring: rpcdelta.DefaultRing, Untimed: true,
	}
}

// code returns the bits per frame with a prior, headers included.
func (j *judge) code(ctx context.Context, t *trace.Trace, p *prior.Prior) (float64, error) {
	cfg := j.config()
	cfg.Prior = p
	r, err := bench.Run(ctx, t, cfg)
	if err != nil {
		return 0, err
	}
	c := &r.Codecs[0]
	if c.Mismatches != 0 {
		return 0, fmt.Errorf("%s: %d frames differ from what was sent", t.Name, c.Mismatches)
	}
	return c.PayloadBits + c.HeaderBits, nil
}

// prior trains a candidate on traces.
func (c *candidate) prior(ctx context.Context, traces []*trace.Trace) (*prior.Prior, error) {
	switch {
	case c.train == nil:
		return prior.Generic(), nil
	case c.blank:
		traces = nil
	}
	return prior.Train(ctx, recordings(traces...), *c.train)
}

// results contains the output.
type results struct {
	Link       string        `json:"link"`
	Candidates []string      `json:"candidates"`
	Traces     []traceResult `json:"traces"`
	Mean       traceResult   `json:"geometric_mean"`
}

// traceResult contains the bits per frame, payload and header, of each candidate.
type traceResult struct {
	Trace string             `json:"trace,omitempty"`
	Whole map[string]float64 `json:"bits"`
	First map[string]float64 `json:"bits_first_10s"`

	frames string
}

// compare writes the results of all candidates on all traces.
func (j *judge) compare(ctx context.Context, c *contest, traces []*trace.Trace, w io.Writer) error {
	cfg := j.config()
	out := results{Link: cfg.String()}
	for _, x := range c.all {
		out.Candidates = append(out.Candidates, x.name)
	}
	for i := range traces {
		t, others := c.split(traces, i)
		start := *t
		start.Frames = t.Frames[:min(len(t.Frames), int(beginning.Seconds()*t.Schema.RateHz()))]
		r := traceResult{t.Name, map[string]float64{}, map[string]float64{}, fmt.Sprint(len(t.Frames))}
		for _, x := range c.all {
			j.progress(t.Name+" "+x.name, float64(i)/float64(len(traces)))
			p, err := x.prior(ctx, others)
			if err != nil {
				return err
			}
			if r.Whole[x.name], err = j.code(ctx, t, p); err != nil {
				return err
			}
			if r.First[x.name], err = j.code(ctx, &start, p); err != nil {
				return err
			}
		}
		out.Traces = append(out.Traces, r)
	}
	out.average()
	return emit(w, j.json, []results{out}, func(b *strings.Builder) {
		fmt.Fprintf(b, "%s: bits a frame, payload and header; %s\n\n", c.title, out.Link)
		table.Write(b, c.rows(&out))
		b.WriteString("\n" + c.notes)
	})
}

// average sets the geometric means of all traces.
func (r *results) average() {
	mean := func(name string, of func(*traceResult) map[string]float64) float64 {
		logs := 0.0
		for i := range r.Traces {
			logs += math.Log(of(&r.Traces[i])[name])
		}
		return math.Exp(logs / float64(len(r.Traces)))
	}
	r.Mean = traceResult{Whole: map[string]float64{}, First: map[string]float64{}}
	for _, name := range r.Candidates {
		r.Mean.Whole[name] = mean(name, func(t *traceResult) map[string]float64 { return t.Whole })
		r.Mean.First[name] = mean(name, func(t *traceResult) map[string]float64 { return t.First })
	}
}

// rows returns the results and their means as a table.
func (c *contest) rows(r *results) [][]string {
	blank := make([]string, len(r.Candidates))
	names := append(slices.Clone(r.Candidates), "gain")
	rows := [][]string{
		slices.Concat([]string{"", "", "whole"}, blank, []string{fmt.Sprintf("first %.0f s", beginning.Seconds())}, blank),
		slices.Concat([]string{"", "frames"}, names, names),
	}
	mean := r.Mean
	mean.Trace = "geometric mean"
	for _, t := range append(r.Traces, mean) {
		row := []string{t.Trace, t.frames}
		for _, bits := range []map[string]float64{t.Whole, t.First} {
			for _, name := range r.Candidates {
				row = append(row, fmt.Sprintf("%.1f", bits[name]))
			}
			gain := 1 - bits[c.all[len(c.all)-1].name]/bits[c.all[c.base].name]
			row = append(row, fmt.Sprintf("%.1f %%", 100*gain))
		}
		rows = append(rows, row)
	}
	return rows
}
