package prior

import (
	"context"
	"fmt"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// Recording is a stream to train a prior on: all its frames, in order.
type Recording struct {
	Schema *schema.Schema
	Frames []schema.Frame
}

// TrainConfig configures [Train]. Zero fields mean the defaults.
type TrainConfig struct {
	// FromScratch starts without the built-in prior. By default the built-in prior supplies the
	// parameters that the recordings do not cover.
	FromScratch bool
	// Generic omits the parameters that were trained for individual fields. The prior can then
	// serve other games.
	Generic bool
	// Progress, if not nil, is called from time to time with the completed fraction.
	Progress func(done float64)
}

// Train trains a prior on recordings. The same recordings result in the same prior on every
// platform; without recordings, the result is the prior that training starts from. Training takes
// about 30 µs per frame and stops early with ctx's error. A frame that does not match its schema is
// an error.
func Train(ctx context.Context, recordings []Recording, cfg TrainConfig) (*Prior, error) {
	recs := make([]adaptive.Recording, len(recordings))
	for i := range recordings {
		r := &recordings[i]
		recs[i] = adaptive.Recording{Fields: adaptive.FieldsOf(r.Schema), RateHz: r.Schema.RateHz()}
		for n := range r.Frames {
			if err := r.Schema.Check(&r.Frames[n]); err != nil {
				return nil, fmt.Errorf("prior: train: recording %d, frame %d: %w", i, n, err)
			}
			recs[i].Frames = append(recs[i].Frames, &r.Frames[n])
		}
	}
	training := adaptive.Training{Generic: cfg.Generic, Progress: func(done float64) error {
		if cfg.Progress != nil {
			cfg.Progress(done)
		}
		return ctx.Err()
	}}
	if !cfg.FromScratch {
		training.From = adaptive.Generic()
	}
	p, err := adaptive.Train(recs, training)
	if err != nil {
		return nil, fmt.Errorf("prior: train: %w", err)
	}
	return (*Prior)(p), nil
}
