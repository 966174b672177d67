package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/internal/lab/table"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/trace"
)

// judge evaluates priors.
type judge struct {
	distance int // 0: over a link
	progress func(what string, done float64)
	json     bool
}

// beginning is the part of a trace that is also measured alone.
const beginning = 10 * time.Second

// candidate is a prior to evaluate.
type candidate struct {
	name  string
	train *prior.TrainConfig // nil is the built-in prior
	blank bool               // trained on nothing
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
		Link:  simlink.Config{RTT: 100 * time.Millisecond, Burst: 1, Seed: 1},
		AckHz: ds.DefaultAckHz, Ring: rpcdelta.DefaultRing, Untimed: true,
	}
}

// measure encodes a trace with a prior.
func (j *judge) measure(ctx context.Context, t *trace.Trace, p *prior.Prior) (b bits, err error) {
	start := *t
	start.Frames = t.Frames[:min(len(t.Frames), int(beginning.Seconds()*t.Schema.RateHz()))]
	if b.whole, err = j.code(ctx, t, p); err != nil {
		return b, err
	}
	b.first, err = j.code(ctx, &start, p)
	return b, err
}

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

// try encodes a trace with candidates trained on others.
func (j *judge) try(ctx context.Context, t *trace.Trace, others []*trace.Trace, all []candidate, done float64) (judged, error) {
	out := judged{name: t.Name, frames: strconv.Itoa(len(t.Frames))}
	for i := range all {
		j.progress(t.Name+" "+all[i].name, done)
		p, err := all[i].prior(ctx, others)
		if err != nil {
			return out, err
		}
		b, err := j.measure(ctx, t, p)
		if err != nil {
			return out, err
		}
		out.bits = append(out.bits, b)
	}
	return out, nil
}

func (j *judge) leaveOneOut(ctx context.Context, traces []*trace.Trace, w io.Writer) error {
	v := verdict{
		title: "Each trace with priors trained on the other traces",
		base:  1,
		all: []candidate{
			{name: "untrained", train: &prior.TrainConfig{FromScratch: true}, blank: true},
			{name: "built-in"},
			{name: "generic", train: &prior.TrainConfig{FromScratch: true, Generic: true}},
			{name: "trained", train: &prior.TrainConfig{FromScratch: true}},
		},
		notes: `untrained  initial curves for residuals and manual starts, before any training
built-in   the generic prior of this version; if it was trained on the trace, it has an advantage
generic    trained on the other traces from scratch, without models of single fields
trained    the same with models of single fields, for fields that the other traces have too
gain       of trained over built-in
`,
	}
	for i, t := range traces {
		others := slices.Delete(slices.Clone(traces), i, i+1)
		r, err := j.try(ctx, t, others, v.all, float64(i)/float64(len(traces)))
		if err != nil {
			return err
		}
		v.rows = append(v.rows, r)
	}
	if j.json {
		return encodeJSON(w, v.results(j.how()))
	}
	return v.write(w, j.how())
}

func (j *judge) halves(ctx context.Context, traces []*trace.Trace, w io.Writer) error {
	v := verdict{
		title: "The second half of each trace, as a separate session, with priors trained on the first half",
		all: []candidate{
			{name: "built-in"},
			{name: "generic", train: &prior.TrainConfig{Generic: true}},
			{name: "trained", train: &prior.TrainConfig{}},
		},
		notes: `built-in   the generic prior of this version
generic    refined by the first half, without models of single fields
trained    the same with models of single fields
gain       of trained over built-in
`,
	}
	for i, t := range traces {
		front, back := *t, *t
		front.Frames, back.Frames = t.Frames[:len(t.Frames)/2], t.Frames[len(t.Frames)/2:]
		r, err := j.try(ctx, &back, []*trace.Trace{&front}, v.all, float64(i)/float64(len(traces)))
		if err != nil {
			return err
		}
		v.rows = append(v.rows, r)
	}
	if j.json {
		return encodeJSON(w, v.results(j.how()))
	}
	return v.write(w, j.how())
}

// how describes the link.
func (j *judge) how() string {
	if j.distance != 0 {
		return fmt.Sprintf("no link, each frame against the one %d before it", j.distance)
	}
	cfg := j.config()
	return fmt.Sprintf("%v, acks at %g Hz", &cfg.Link, cfg.AckHz)
}

// verdict contains the results of the candidates on all traces.
type verdict struct {
	title, notes string
	all          []candidate
	base         int // the candidate against which the last one gains
	rows         []judged
}

// judged contains the results of the candidates on one trace.
type judged struct {
	name   string
	frames string
	bits   []bits
}

// bits a frame of a whole trace and of its beginning, headers included.
type bits struct{ whole, first float64 }

func (b bits) wholeBits() float64 { return b.whole }
func (b bits) firstBits() float64 { return b.first }

// write writes the results and their geometric means as a table.
func (v *verdict) write(w io.Writer, how string) error {
	head, names := []string{"", "", "whole"}, []string{"", "frames"}
	for range v.all {
		head = append(head, "")
	}
	head = append(head, fmt.Sprintf("first %.0f s", beginning.Seconds()))
	for range v.all {
		head = append(head, "")
	}
	for range 2 {
		for _, c := range v.all {
			names = append(names, c.name)
		}
		names = append(names, "gain")
	}
	rows := [][]string{head, names}
	for _, r := range append(v.rows, v.mean()) {
		rows = append(rows, v.cells(&r))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: bits a frame, payload and header; %s\n\n", v.title, how)
	table.Write(&b, rows)
	b.WriteString("\n" + v.notes)
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *verdict) cells(r *judged) []string {
	row := []string{r.name, r.frames}
	for _, of := range []func(bits) float64{bits.wholeBits, bits.firstBits} {
		for _, b := range r.bits {
			row = append(row, fmt.Sprintf("%.1f", of(b)))
		}
		gain := 1 - of(r.bits[len(r.bits)-1])/of(r.bits[v.base])
		row = append(row, fmt.Sprintf("%.1f %%", 100*gain))
	}
	return row
}

// mean is the geometric one of all traces.
func (v *verdict) mean() judged {
	out := judged{name: "geometric mean", bits: make([]bits, len(v.all))}
	for i := range out.bits {
		whole, first := 0.0, 0.0
		for _, r := range v.rows {
			whole += math.Log(r.bits[i].whole)
			first += math.Log(r.bits[i].first)
		}
		n := float64(len(v.rows))
		out.bits[i] = bits{math.Exp(whole / n), math.Exp(first / n)}
	}
	return out
}

// results are the same for JSON.
type results struct {
	Link       string        `json:"link"`
	Candidates []string      `json:"candidates"`
	Traces     []traceResult `json:"traces"`
	Mean       traceResult   `json:"geometric_mean"`
}

// traceResult has bits a frame, payload and header, of each candidate.
type traceResult struct {
	Trace string             `json:"trace,omitempty"`
	Whole map[string]float64 `json:"bits"`
	First map[string]float64 `json:"bits_first_10s"`
}

func (v *verdict) results(how string) *results {
	out := &results{Link: how}
	for _, c := range v.all {
		out.Candidates = append(out.Candidates, c.name)
	}
	of := func(r judged) traceResult {
		t := traceResult{r.name, map[string]float64{}, map[string]float64{}}
		for i, name := range out.Candidates {
			t.Whole[name], t.First[name] = r.bits[i].whole, r.bits[i].first
		}
		return t
	}
	for _, r := range v.rows {
		out.Traces = append(out.Traces, of(r))
	}
	out.Mean = of(v.mean())
	out.Mean.Trace = ""
	return out
}
