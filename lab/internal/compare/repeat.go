package compare

import (
	"fmt"
	"math"

	"github.com/uplink-rpc/uplink/client"
	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/lab/internal/peer"
)

// repeatedSuffix ends the names of schemes with repetition.
const repeatedSuffix = " repeated"

const (
	// target is the share of frames that must arrive before the deadline of preset, rounded to
	// hundredths of a percent.
	target = 0.999
	// spanFrames is the number of frames from which the number of repetitions is determined.
	spanFrames = 500_000
	// formFrames is the number of frames from which the form of payloads with repetition is chosen.
	formFrames = 1000
)

// preset defines the deadline of all schemes with repetition.
var preset = client.LowLatency

// span returns the minimum number of frames per payload that reaches the target at a loss. A frame
// is sent for the last time before its deadline, so no number may suffice. Then span returns the
// maximum.
func (t *trial) span(loss float64) (int, error) {
	if loss == 0 {
		return 1, nil
	}
	course, err := t.course(spanFrames, loss, seed)
	if err != nil {
		return 0, err
	}
	_, deadline := preset.FramesAt(t.schema.RateHz())
	for span := 1; span <= deadline; span++ {
		if math.Round(1e4*delivered(course, span)) >= 1e4*target {
			return span, nil
		}
	}
	return deadline + 1, nil
}

// delivered returns the share of frames that arrive if payloads have the given number of frames.
func delivered(course bench.Course, span int) float64 {
	missing, got := 0, 0
	for n := range course {
		if missing++; course[n].Arrived {
			got += min(missing, span)
			missing = 0
		}
	}
	return share(got, len(course))
}

// repeated runs a peer that repeats older frames in each payload until the target is reached. It
// uses the form with the fewest bits at the start of the first course of each loss.
func (t *trial) repeated(k *peer.Kind) (Scheme, error) {
	s := Scheme{Name: k.Name + repeatedSuffix, Class: k.Class}
	t.cfg.Progress(t.measured.Name, s.Name)
	for i, loss := range t.cfg.Losses {
		if err := t.ctx.Err(); err != nil {
			return s, err
		}
		many := *k
		many.Span = t.spans[i]
		p, form, err := t.repeatForm(&many, t.courses[i][0])
		if err != nil {
			return s, err
		}
		point, err := t.replay(&many, p, t.courses[i])
		if err != nil {
			return s, err
		}
		point.Loss, point.Form, point.Span = loss, form, many.Span
		s.Points = append(s.Points, point)
		if loss == t.cfg.TimedLoss && !t.cfg.Untimed {
			r := newReplay(p, &many, t.schema, t.measured.Frames, t.courses[i][0])
			if _, err := r.run(); err != nil {
				return s, err
			}
			if s.EncodeNs, s.DecodeNs, err = r.measure(); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

func (t *trial) repeatForm(k *peer.Kind, course bench.Course) (best peer.Peer, form peer.Form, err error) {
	samples, least := t.samples(k.Span), 0.0
	frames := t.measured.Frames[:min(formFrames, len(t.measured.Frames))]
	for _, f := range k.RepeatForms() {
		p, err := k.New(t.schema, f, samples)
		if err != nil {
			return nil, "", err
		}
		point, err := newReplay(p, k, t.schema, frames, course).run()
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", f, err)
		}
		if best == nil || point.Bits < least {
			best, form, least = p, f, point.Bits
		}
	}
	return best, form, nil
}

// samples returns the payloads of the first half without loss, with the given number of frames in
// each.
func (t *trial) samples(span int) (samples []peer.Sample) {
	for n := range t.sampled {
		if b := t.sampled[n].Base; b >= 0 {
			samples = append(samples, peer.Sample{Base: &t.training[b], Rows: t.training[first(t.sampled, n, span) : n+1]})
		}
	}
	return samples
}

// first returns the first frame of payload n. Of the last span frames, it is the first one that is
// newer than the baseline, since acks have shown that the baseline arrived.
func first(course bench.Course, n, span int) int {
	return max(0, course[n].Base+1, n+1-span)
}
