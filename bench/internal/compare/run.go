package compare

import (
	"context"
	"fmt"

	"github.com/uplink-rpc/uplink/bench/internal/peer"
	"github.com/uplink-rpc/uplink/internal/lab/bench"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/trace"
)

// trial is one trace in its two halves.
type trial struct {
	ctx      context.Context
	cfg      Config
	schema   *schema.Schema
	training []schema.Frame
	measured *trace.Trace
	samples  []peer.Sample
	courses  []bench.Course // at each loss
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

// prepare makes the courses, and the samples: frames of the first half with the baselines that they have on a link
// without loss.
func (t *trial) prepare() error {
	course, err := t.course(len(t.training), 0)
	if err != nil {
		return err
	}
	for n := range course {
		if b := course[n].Base; b >= 0 {
			t.samples = append(t.samples, peer.Sample{Base: &t.training[b], Frame: &t.training[n]})
		}
	}
	for _, loss := range t.cfg.Losses {
		if course, err = t.course(len(t.measured.Frames), loss); err != nil {
			return err
		}
		t.courses = append(t.courses, course)
	}
	if !t.cfg.Untimed {
		t.timed, err = t.course(len(t.measured.Frames), t.cfg.TimedLoss)
	}
	return err
}

func (t *trial) course(frames int, loss float64) (bench.Course, error) {
	return bench.NewCourse(t.ctx, frames, t.schema.RateHz(), t.cfg.link(loss))
}

// peer runs a peer at each loss, in the form that takes the fewest bits at the first.
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
		point, err := t.replay(k, p, i+1).run()
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

// bestForm runs a peer at the first loss in each form.
func (t *trial) bestForm(k *peer.Kind) (best peer.Peer, s Scheme, err error) {
	for _, form := range k.Forms {
		p, err := k.New(t.schema, form, t.samples)
		if err != nil {
			return nil, s, err
		}
		point, err := t.replay(k, p, 0).run()
		if err != nil {
			return nil, s, err
		}
		if best == nil || point.Bits < s.Points[0].Bits {
			best, s = p, Scheme{Name: k.Name, Class: k.Class, Form: form, Points: []Point{point}}
		}
	}
	return best, s, nil
}

// replay is the peer on the course of loss i.
func (t *trial) replay(k *peer.Kind, p peer.Peer, i int) *replay {
	return newReplay(p, k, t.schema, t.measured.Frames, t.courses[i])
}
