// Package compare runs this project's codecs and their peers on the same frames over the same link,
// and measures bits and time. The first half of a trace trains the peers that learn from samples;
// the second half is measured.
package compare

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/simlink"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/lab/internal/peer"
)

type trial struct {
	ctx      context.Context
	cfg      Config
	schema   *schema.Schema
	training []schema.Frame
	measured *trace.Trace
	sampled  bench.Course     // course of the training half
	courses  [][]bench.Course // courses at each loss, one for each seed
	spans    []int            // number of frames in a payload with repetition, at each loss
	timed    bench.Course
}

// Run runs all schemes over the trace.
func Run(ctx context.Context, t *trace.Trace, cfg Config) (*Result, error) {
	cfg.fill()
	frames := t.Frames
	if cfg.Frames > 0 && cfg.Frames < len(frames) {
		frames = frames[:cfg.Frames]
	}
	if len(frames) < MinFrames {
		return nil, fmt.Errorf("%s: %d frames, want at least %d", t.Name, len(frames), MinFrames)
	}
	half := len(frames) / 2
	tr := &trial{ctx: ctx, cfg: cfg, schema: t.Schema, training: frames[:half]}
	tr.measured = &trace.Trace{Name: t.Name, Schema: t.Schema, Frames: frames[half:]}
	if err := tr.prepare(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	r := &Result{Trace: t.Name, RateHz: t.Schema.RateHz(), Training: half, Measured: len(frames) - half}
	kinds := peer.Kinds()
	for i := range kinds {
		s, err := tr.peer(&kinds[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.Name, kinds[i].Name, err)
		}
		r.Schemes = append(r.Schemes, s)
		if kinds[i].Class != peer.General {
			continue
		}
		if s, err = tr.repeated(&kinds[i]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.Name, s.Name, err)
		}
		r.Schemes = append(r.Schemes, s)
	}
	for i := range owns {
		s, err := tr.own(&owns[i])
		if err != nil {
			return nil, err
		}
		r.Schemes = append(r.Schemes, s)
	}
	return r, nil
}

// prepare creates the courses.
func (t *trial) prepare() (err error) {
	if t.sampled, err = t.course(len(t.training), 0, seed); err != nil {
		return err
	}
	for _, loss := range t.cfg.Losses {
		var courses []bench.Course
		for i := range t.cfg.seeds(loss) {
			course, err := t.course(len(t.measured.Frames), loss, seed+uint64(i))
			if err != nil {
				return err
			}
			courses = append(courses, course)
		}
		span, err := t.span(loss)
		if err != nil {
			return err
		}
		t.courses, t.spans = append(t.courses, courses), append(t.spans, span)
	}
	if !t.cfg.Untimed {
		t.timed, err = t.course(len(t.measured.Frames), t.cfg.TimedLoss, seed)
	}
	return err
}

func (t *trial) course(frames int, loss float64, seed uint64) (bench.Course, error) {
	cfg := t.cfg.link(loss)
	cfg.Link.Seed = seed
	return bench.NewCourse(t.ctx, frames, t.schema.RateHz(), cfg)
}

// peer runs a peer at each loss, in the form that has the fewest bits at the first loss.
func (t *trial) peer(k *peer.Kind) (Scheme, error) {
	t.cfg.Progress(t.measured.Name, k.Name)
	p, s, err := t.bestForm(k)
	if err != nil {
		return s, err
	}
	for i := range t.courses[1:] {
		if err := t.ctx.Err(); err != nil {
			return s, err
		}
		point, err := t.replay(k, p, t.courses[i+1])
		if err != nil {
			return s, err
		}
		s.Points = append(s.Points, point)
	}
	for i := range s.Points {
		s.Points[i].Loss = t.cfg.Losses[i]
	}
	if t.cfg.Untimed {
		return s, nil
	}
	r := newReplay(p, k, t.schema, t.measured.Frames, t.timed)
	if _, err := r.run(); err != nil {
		return s, err
	}
	s.EncodeNs, s.DecodeNs, err = r.measure()
	return s, err
}

// bestForm runs a peer at the first loss in each form and returns the best one with its result.
func (t *trial) bestForm(k *peer.Kind) (best peer.Peer, s Scheme, err error) {
	samples := t.samples(1)
	for _, form := range k.Forms {
		p, err := k.New(t.schema, form, samples)
		if err != nil {
			return nil, s, err
		}
		point, err := t.replay(k, p, t.courses[0])
		if err != nil {
			return nil, s, err
		}
		if best == nil || point.Bits < s.Points[0].Bits {
			best, s = p, Scheme{Name: k.Name, Class: k.Class, Form: form, Points: []Point{point}}
		}
	}
	return best, s, nil
}

// replay runs a peer on several courses and returns the total.
func (t *trial) replay(k *peer.Kind, p peer.Peer, courses []bench.Course) (Point, error) {
	var total tally
	for _, course := range courses {
		r := newReplay(p, k, t.schema, t.measured.Frames, course)
		if _, err := r.run(); err != nil {
			return Point{}, err
		}
		total.add(&r.tally)
	}
	return total.point(), nil
}

// Config configures a comparison. Zero fields mean the defaults.
type Config struct {
	// Losses are the fractions of packets lost in each direction. The first must be 0. The default
	// is 0 to 0.2.
	Losses []float64
	// Seeds is the number of links with loss; default 1. Each has other losses and starts without
	// state.
	Seeds int
	// TimedLoss is the loss at which times are measured. Times of schemes with repetition are
	// measured only if it is one of Losses.
	TimedLoss float64
	// Frames is the number of frames of a trace that are used, half of them for training. The
	// default is all.
	Frames int
	// Untimed disables the measurement of times.
	Untimed bool
	// Progress, if not nil, is called before each scheme.
	Progress func(trace, scheme string)
}

// The link of all runs, except its loss.
const (
	roundTrip = 100 * time.Millisecond
	seed      = 1
)

// link returns the configuration of a link at a loss. Acks have the default rate of a server.
func (c *Config) link(loss float64) bench.Config {
	return bench.Config{
		Link:    simlink.Config{RTT: roundTrip, Loss: loss, Burst: 1, Seed: seed},
		AckHz:   ds.DefaultAckHz,
		Ring:    rpcdelta.DefaultRing,
		Untimed: c.Untimed,
	}
}

// seeds returns the number of links at a loss.
func (c *Config) seeds(loss float64) int {
	if loss == 0 {
		return 1
	}
	return max(c.Seeds, 1)
}

// MinFrames is the minimum number of frames of a comparison.
const MinFrames = 1000

func (c *Config) fill() {
	if c.Losses == nil {
		c.Losses = []float64{0, 0.01, 0.05, 0.1, 0.2}
	}
	if c.Progress == nil {
		c.Progress = func(string, string) {}
	}
}

// Result is the result of one trace. Its JSON is part of the output of the command.
type Result struct {
	Trace  string  `json:"trace"`
	RateHz float64 `json:"rate_hz"`
	// Training and Measured are the numbers of frames of the two halves.
	Training int      `json:"frames_training"`
	Measured int      `json:"frames_measured"`
	Schemes  []Scheme `json:"schemes"`
}

// Own is the class of the codecs of this project and of the paper.
const Own peer.Class = "own"

// Scheme is the result of one scheme.
type Scheme struct {
	Name  string     `json:"name"`
	Class peer.Class `json:"class"`
	// Form is the layout of differences, empty if the peer has no choice.
	Form peer.Form `json:"form,omitempty"`
	// Note is a remark for the reader of the results.
	Note   string  `json:"note,omitempty"`
	Points []Point `json:"points"`
	// EncodeNs and DecodeNs are nanoseconds per sent frame and per received payload, of the fastest
	// pass.
	EncodeNs float64 `json:"encode_ns,omitempty"`
	DecodeNs float64 `json:"decode_ns,omitempty"`
}

// Point is the result of a scheme at one loss.
type Point struct {
	Loss float64 `json:"loss"`
	// Bits are the bits of all payloads, in whole bytes, and of their message headers, per
	// delivered frame.
	Bits float64 `json:"bits_per_delivered_frame"`
	// PayloadBits is the size of the payloads in bits per sent frame, without headers and acks.
	PayloadBits float64 `json:"payload_bits_per_frame_sent"`
	Delivered   float64 `json:"delivered_ratio"`
	Mismatches  int     `json:"mismatches"`
	// Span is the number of frames in a payload with repetition, and Form their layout.
	Span int       `json:"frames_per_payload,omitempty"`
	Form peer.Form `json:"form,omitempty"`
}

func (r *Result) at(name string) *Scheme {
	for i := range r.Schemes {
		if r.Schemes[i].Name == name {
			return &r.Schemes[i]
		}
	}
	return nil
}

// Mean contains the geometric means of a scheme over all traces.
type Mean struct {
	Name  string     `json:"name"`
	Class peer.Class `json:"class"`
	// Bits are the bits per delivered frame at each loss. Delivered are the arithmetic means of the
	// delivered ratios.
	Bits      []float64 `json:"bits_per_delivered_frame"`
	Delivered []float64 `json:"delivered_ratio"`
	EncodeNs  float64   `json:"encode_ns,omitempty"`
	DecodeNs  float64   `json:"decode_ns,omitempty"`
}

// Base returns the name without the mark of repetition.
func (m *Mean) Base() string { return strings.TrimSuffix(m.Name, repeatedSuffix) }

// Summary is the result of all traces.
type Summary struct {
	Losses []float64 `json:"losses"`
	Means  []Mean    `json:"geometric_means"`
	// Spans are the numbers of frames in a payload of peers with repetition at each loss. Each is
	// the maximum of all traces.
	Spans []int `json:"frames_per_repeated_payload"`
	// Ratios compare adaptive without redundancy with the general-purpose peer that has the fewest
	// bits for the trace and loss. They also compare adaptive with redundancy with the best peer
	// with repetition.
	Ratios []Ratio `json:"ratios_to_best_general_peer"`
}

// Ratio contains quotients of bits per delivered frame: geometric means over the traces at each
// loss, and the quotient of each trace without loss.
type Ratio struct {
	Name  string    `json:"name"`
	Loss  []float64 `json:"at_each_loss"`
	Trace []float64 `json:"at_each_trace_without_loss"`
}

// Summarize returns the summary of the results of at least one trace. All have the same losses.
func Summarize(results []*Result) *Summary {
	first := results[0]
	s := &Summary{}
	for _, p := range first.Schemes[0].Points {
		s.Losses = append(s.Losses, p.Loss)
	}
	s.Spans = make([]int, len(s.Losses))
	for _, r := range results {
		for i := range r.Schemes {
			for k, p := range r.Schemes[i].Points {
				s.Spans[k] = max(s.Spans[k], p.Span)
			}
		}
	}
	for i := range first.Schemes {
		s.Means = append(s.Means, s.mean(results, i))
	}
	for _, name := range []string{Adaptive, Redundant} {
		s.Ratios = append(s.Ratios, s.ratio(results, name))
	}
	return s
}

func (s *Summary) mean(results []*Result, i int) Mean {
	over := func(f func(*Scheme) float64) float64 {
		return geometric(results, func(r *Result) float64 { return f(&r.Schemes[i]) })
	}
	m := Mean{Name: results[0].Schemes[i].Name, Class: results[0].Schemes[i].Class}
	for k := range s.Losses {
		delivered := 0.0
		for _, r := range results {
			delivered += r.Schemes[i].Points[k].Delivered / float64(len(results))
		}
		m.Delivered = append(m.Delivered, delivered)
		m.Bits = append(m.Bits, over(func(c *Scheme) float64 { return c.Points[k].Bits }))
	}
	m.EncodeNs = over(func(c *Scheme) float64 { return c.EncodeNs })
	m.DecodeNs = over(func(c *Scheme) float64 { return c.DecodeNs })
	return m
}

func (s *Summary) ratio(results []*Result, name string) Ratio {
	ratio := Ratio{Name: name}
	for k := range s.Losses {
		ratio.Loss = append(ratio.Loss, geometric(results, func(r *Result) float64 { return r.ratio(name, k) }))
	}
	for _, r := range results {
		ratio.Trace = append(ratio.Trace, r.ratio(name, 0))
	}
	return ratio
}

// ratio returns the bits of a scheme divided by the bits of the best general-purpose peer, at loss
// k.
func (r *Result) ratio(name string, k int) float64 {
	return r.at(name).Points[k].Bits / r.Best(k, Repeated(name)).Points[k].Bits
}

// Repeated reports whether the scheme with this name repeats frames until the target is reached.
func Repeated(name string) bool { return strings.HasSuffix(name, repeatedSuffix) }

// Best returns the general-purpose peer with the fewest bits at loss k, among the peers with
// repetition or those without.
func (r *Result) Best(k int, repeated bool) *Scheme {
	var best *Scheme
	for i := range r.Schemes {
		if s := &r.Schemes[i]; s.Class == peer.General && Repeated(s.Name) == repeated && (best == nil || s.Points[k].Bits < best.Points[k].Bits) {
			best = s
		}
	}
	return best
}

// Wrong returns the number of frames that differ from the sent ones, in all runs.
func (r *Result) Wrong() (n int) {
	for _, s := range r.Schemes {
		for _, p := range s.Points {
			n += p.Mismatches
		}
	}
	return n
}

func geometric(results []*Result, f func(*Result) float64) float64 {
	sum := 0.0
	for _, r := range results {
		sum += math.Log(f(r))
	}
	return math.Exp(sum / float64(len(results)))
}
