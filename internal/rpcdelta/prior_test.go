package rpcdelta

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/prior"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/schematest"
)

// recording returns n frames of s that change step by step.
func recording(s *schema.Schema, seed uint64, n int) prior.Recording {
	pick := schematest.FromRand(rand.New(rand.NewPCG(seed, 8)))
	frames := s.NewFrames(n)
	pick.Frame(s, &frames[0], s.NewFrame())
	for i := 1; i < n; i++ {
		frames[i].CopyFrom(&frames[i-1])
		pick.Walk(s, &frames[i])
	}
	return prior.Recording{Schema: s, Frames: frames}
}

func mustTrain(t failer, cfg prior.TrainConfig, recordings ...prior.Recording) *prior.Prior {
	t.Helper()
	p, err := prior.Train(context.Background(), recordings, cfg)
	must(t, err)
	return p
}

// smallPrior is trained on frames of smallSchema.
var smallPrior = sync.OnceValue(func() *prior.Prior {
	s, _ := schema.New("Small", 60, smallFields)
	p, _ := prior.Train(context.Background(), []prior.Recording{recording(s, 1, 600)}, prior.TrainConfig{})
	return p
})

func TestPriorFile(t *testing.T) {
	p := smallPrior()
	file := p.Append([]byte("x"))[1:]
	back, err := prior.Parse(file)
	if err != nil || back.Hash() != p.Hash() || !bytes.Equal(back.Append(nil), file) {
		t.Fatalf("%v, %v", back, err)
	}
	if p.Fields() != 4 || len(p.String()) != 16 || p.Hash() == prior.Generic().Hash() {
		t.Errorf("%d fields, hash %v", p.Fields(), p)
	}
	if _, err := prior.Parse(file[:20]); !errors.Is(err, prior.ErrInvalid) || !strings.Contains(err.Error(), "prior: not a usable prior") {
		t.Errorf("%v", err)
	}
}

func TestTrainErrors(t *testing.T) {
	s := smallSchema(t)
	short := prior.Recording{Schema: s, Frames: []schema.Frame{{Ints: []int32{1}}}}
	if _, err := prior.Train(t.Context(), []prior.Recording{recording(s, 1, 5), short}, prior.TrainConfig{}); !errors.Is(err, schema.ErrFrame) || !strings.Contains(err.Error(), "recording 1, frame 0") {
		t.Errorf("%v", err)
	}
	if p := mustTrain(t, prior.TrainConfig{}); p.Hash() != prior.Generic().Hash() {
		t.Errorf("without recordings the prior is %v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cfg := prior.TrainConfig{Progress: func(float64) { cancel() }}
	if _, err := prior.Train(ctx, []prior.Recording{recording(s, 1, 3000)}, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestPriorIsPerSchema checks that a prior knows a field of the RPC that it was trained on, but not
// the same field of another RPC.
func TestPriorIsPerSchema(t *testing.T) {
	s := smallSchema(t)
	other, err := schema.New("Other", 60, s.Fields())
	must(t, err)
	size := func(s *schema.Schema, p *prior.Prior) (bits int) {
		x := newStream(t, s, streamConfig{Seed: 5, Codec: Adaptive, Redundancy: RedundancyOff, Prior: p, Smooth: true})
		for range 40 {
			x.step(t)
		}
		for _, h := range x.history[:40] {
			bits += h.info.PayloadBits
		}
		return bits
	}
	known, unknown, generic := size(s, smallPrior()), size(other, smallPrior()), size(s, nil)
	if known >= unknown || known >= generic*9/10 {
		t.Errorf("%d bits if the fields are known, %d if not, %d with the built-in prior", known, unknown, generic)
	}
}

// TestOtherPriors checks that ends with different priors detect this by the hash in a header.
func TestOtherPriors(t *testing.T) {
	s := smallSchema(t)
	p := newPair(t, s, EncoderConfig{Codec: Adaptive, Redundancy: RedundancyOff, Prior: smallPrior()}, DecoderConfig{Prior: prior.Generic()})
	for range 130 {
		schematest.FromRand(rand.New(rand.NewPCG(1, 1))).Walk(s, p.frame)
		p.send(t)
		if _, err := p.dec.Decode(p.payload); err != nil {
			return
		}
		p.acknowledge(t)
	}
	t.Error("the decoder did not detect the other prior")
}

// TestModels checks that a schema caches few models, and one model per prior.
func TestModels(t *testing.T) {
	s := smallSchema(t)
	if modelOf(s, nil) != modelOf(s, prior.Generic()) {
		t.Error("nil is not the built-in prior")
	}
	file := smallPrior().Append(nil)
	for range 3 * maxModels {
		p, err := prior.Parse(file)
		must(t, err)
		if m := modelOf(s, p); m != modelOf(s, p) {
			t.Fatal("a prior was compiled twice in a row")
		}
	}
	if n := len(modelsOf(s).known); n > maxModels {
		t.Errorf("%d models are cached", n)
	}
}
