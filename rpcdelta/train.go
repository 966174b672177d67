package rpcdelta

import (
	"context"
	"fmt"

	"github.com/uplink-rpc/uplink/rpcdelta/internal/adaptive"
	"github.com/uplink-rpc/uplink/schema"
)

// Recording is a stream of frames to train a prior on, all of them, in order.
type Recording struct {
	Schema *schema.Schema
	Frames []schema.Frame
}

// TrainConfig says how a prior is trained. Zero fields mean the defaults.
type TrainConfig struct {
	// FromScratch trains from nothing, where otherwise the built-in prior has its
	// say about what the recordings leave open.
	FromScratch bool
	// Generic leaves out what single fields learned, for a prior that is to serve
	// other games.
	Generic bool
	// Progress, if set, is called now and then with the share that is done.
	Progress func(done float64)
}

// TrainPrior makes a prior of recordings. The same ones give the same prior, on
// every platform; of none comes the prior that training begins with. It takes some
// 30 us a frame, and ends early with ctx's error. A frame that does not have its
// schema's shape is an error.
func TrainPrior(ctx context.Context, recordings []Recording, cfg TrainConfig) (*Prior, error) {
	recs := make([]adaptive.Recording, len(recordings))
	for i := range recordings {
		r := &recordings[i]
		recs[i] = adaptive.Recording{Fields: formatOf(r.Schema).modelFields(), RateHz: r.Schema.RateHz()}
		for n := range r.Frames {
			if err := r.Schema.Check(&r.Frames[n]); err != nil {
				return nil, fmt.Errorf("rpcdelta: train: recording %d, frame %d: %w", i, n, err)
			}
			recs[i].Rows = append(recs[i].Rows, (*adaptive.Row)(&r.Frames[n]))
		}
	}
	training := adaptive.Training{Generic: cfg.Generic, Progress: func(done float64) error {
		if cfg.Progress != nil {
			cfg.Progress(done)
		}
		return ctx.Err()
	}}
	if !cfg.FromScratch {
		training.From = generic().p
	}
	p, err := adaptive.Train(recs, training)
	if err != nil {
		return nil, fmt.Errorf("rpcdelta: train: %w", err)
	}
	return &Prior{p}, nil
}
