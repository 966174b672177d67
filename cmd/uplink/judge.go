package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/internal/lab/simlink"
	"github.com/uplink-rpc/uplink/rpcdelta"
	"github.com/uplink-rpc/uplink/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/trace"
)

// judge says what priors are worth.
type judge struct {
	distance int // 0: over a link
	progress func(what string, done float64)
	json     bool
}

// beginning is how much of a trace counts as its beginning.
const beginning = 10 * time.Second

// candidate is a prior under trial.
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

// measure codes a trace with a prior.
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

// prior makes a candidate of traces.
func (c *candidate) prior(ctx context.Context, traces []*trace.Trace) (*prior.Prior, error) {
	switch {
	case c.train == nil:
		return prior.Generic(), nil
	case c.blank:
		traces = nil
	}
	return prior.Train(ctx, recordings(traces...), *c.train)
}

// try codes a trace with candidates that were trained on others.
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
		title: "Each trace with priors that were trained on the other ones",
		base:  1,
		all: []candidate{
			{name: "untrained", train: &prior.TrainConfig{FromScratch: true}, blank: true},
			{name: "built-in"},
			{name: "generic", train: &prior.TrainConfig{FromScratch: true, Generic: true}},
			{name: "trained", train: &prior.TrainConfig{FromScratch: true}},
		},
		notes: `untrained  curves for residuals and hand-set starts, before any training
built-in   the generic prior of this version; if it was trained on the trace, it has an advantage
generic    trained on the others from nothing, without what single fields learned
trained    the same with that: fields that the others have too start where those did
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
		title: "The second half of each trace, as a session of its own, with priors trained on the first",
		all: []candidate{
			{name: "built-in"},
			{name: "generic", train: &prior.TrainConfig{Generic: true}},
			{name: "trained", train: &prior.TrainConfig{}},
		},
		notes: `built-in   the generic prior of this version
generic    refined by the first half, without what single fields learned
trained    the same with that
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

// how says what the frames crossed.
func (j *judge) how() string {
	if j.distance != 0 {
		return fmt.Sprintf("no link, each frame against the one %d before it", j.distance)
	}
	cfg := j.config()
	return fmt.Sprintf("%v, acks at %g Hz", &cfg.Link, cfg.AckHz)
}
