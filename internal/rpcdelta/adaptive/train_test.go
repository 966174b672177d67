package adaptive_test

import (
	"errors"
	"testing"

	"github.com/uplink-rpc/uplink/internal/rpcdelta/adaptive"
	"github.com/uplink-rpc/uplink/internal/schema"
)

func mustTrain(t testing.TB, cfg adaptive.Training, recs ...adaptive.Recording) *adaptive.Prior {
	t.Helper()
	p, err := adaptive.Train(recs, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTrainGolden checks that the same recordings result in the same prior on every platform.
func TestTrainGolden(t *testing.T) {
	recs := []adaptive.Recording{
		{Fields: keyed(vehicleFields), RateHz: 60, Frames: smoothFrames(700)},
		{Fields: keyed(allKinds), RateHz: 30, Frames: randomFrames(allKinds, 1, 500)},
	}
	scratch := mustTrain(t, adaptive.Training{}, recs...)
	refined := mustTrain(t, adaptive.Training{From: adaptive.Generic()}, recs...)
	const want, wantRefined = 0xc6191bad9b5e0cd3, 0x268cd731982ec341
	if scratch.Hash() != want || refined.Hash() != wantRefined {
		t.Errorf("from scratch %#x, from the generic prior %#x; want %#x and %#x",
			scratch.Hash(), refined.Hash(), uint64(want), uint64(wantRefined))
	}
	if n := scratch.Fields(); n != len(allKinds) { // the keys of both lists overlap
		t.Errorf("%d fields", n)
	}
	if g := mustTrain(t, adaptive.Training{Generic: true}, recs...); g.Fields() != 0 {
		t.Errorf("a generic prior knows %d fields", g.Fields())
	}
}

func TestTrainOnFewFrames(t *testing.T) {
	frames := smoothFrames(300)
	for _, n := range []int{0, 1, 2, 6, 7, 30} {
		rec := adaptive.Recording{Fields: keyed(vehicleFields), RateHz: 60, Frames: frames[:n]}
		p := mustTrain(t, adaptive.Training{From: adaptive.Generic()}, rec)
		if _, err := adaptive.ParsePrior(p.Append(nil)); err != nil {
			t.Errorf("%d frames: %v", n, err)
		}
	}
	stop := errors.New("stop")
	recs := []adaptive.Recording{{Fields: vehicleFields, RateHz: 60, Frames: smoothFrames(3000)}}
	_, err := adaptive.Train(recs, adaptive.Training{Progress: func(float64) error { return stop }})
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

// TestTrainedPriorSavesBits codes frames that continue a recording that the prior was trained on.
func TestTrainedPriorSavesBits(t *testing.T) {
	frames := smoothFrames(2000)
	rec := adaptive.Recording{Fields: keyed(vehicleFields), RateHz: 60, Frames: frames[:1000]}
	p := mustTrain(t, adaptive.Training{From: adaptive.Generic()}, rec)
	size := func(p *adaptive.Prior, frames []*schema.Frame) (total int) {
		e := newEnd(p.Compile(keyed(vehicleFields)), vehicleFields, 64)
		for i := 6; i < len(frames); i++ {
			e.learn(uint64(i-6), frames[i-6])
			total += len(e.encode(nil, frames[i:i+1], uint64(i), uint64(i-6), true))
		}
		return total
	}
	for _, c := range []struct {
		name     string
		frames   []*schema.Frame
		maxRatio float64
	}{{"beginning", frames[1000:1100], 0.9}, {"whole", frames[1000:], 0.99}} {
		if a, b := size(adaptive.Generic(), c.frames), size(p, c.frames); float64(b) > c.maxRatio*float64(a) {
			t.Errorf("%s: %d bytes with the generic prior, %d with the trained one", c.name, a, b)
		}
	}
}
