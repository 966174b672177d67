package compare

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/bench"
	"github.com/uplink-rpc/uplink/internal/rpcdelta/inspect"
	"github.com/uplink-rpc/uplink/internal/schema"
	"github.com/uplink-rpc/uplink/internal/trace"
	"github.com/uplink-rpc/uplink/lab/internal/peer"
)

func load(t *testing.T, path string) *trace.Trace {
	t.Helper()
	tr, err := trace.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func traces(t *testing.T) (all []*trace.Trace) {
	t.Helper()
	paths, err := filepath.Glob("../../../testdata/traces/*.csv.gz")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d traces, %v", len(paths), err)
	}
	for _, path := range paths {
		all = append(all, load(t, path))
	}
	return all
}

func mustRun(t *testing.T, tr *trace.Trace, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), tr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHalfOfGeneralPurpose checks a promise: adaptive needs half the bits of general peers.
func TestHalfOfGeneralPurpose(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole traces")
	}
	var results []*Result
	for _, tr := range traces(t) {
		r := mustRun(t, tr, Config{Losses: []float64{0}, Untimed: true})
		if n := r.Wrong(); n != 0 {
			t.Errorf("%s: %d frames differ", r.Trace, n)
		}
		results = append(results, r)
	}
	s := Summarize(results)
	t.Logf("%+v", s.Ratios)
	if ratio := s.Ratios[0]; ratio.Name != Adaptive || !(ratio.Loss[0] <= 0.5) {
		t.Errorf("%s takes %.3f of the best general-purpose peer: %.3f", ratio.Name, ratio.Loss[0], ratio.Trace)
	}
}

// TestLoss checks that delivered frames are right, and that repetition alone delivers more of them:
// as many for peers as for adaptive.
func TestLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes under the race detector")
	}
	for _, tr := range traces(t)[:2] {
		r := mustRun(t, tr, Config{Losses: []float64{0, 0.2}, Frames: MinFrames, Untimed: true})
		if r.Training+r.Measured != MinFrames || r.Wrong() != 0 {
			t.Errorf("%s: %d and %d frames, %d wrong", r.Trace, r.Training, r.Measured, r.Wrong())
		}
		most := r.at("full").Points[1].Delivered
		for _, s := range r.Schemes {
			if d := s.Points[0].Delivered; d != 1 {
				t.Errorf("%s: %s delivers %v without loss", r.Trace, s.Name, d)
			}
			d := s.Points[1].Delivered
			if more := s.Name == "chain4" || Repeated(s.Name); more != (d > most) || d < most {
				t.Errorf("%s: %s delivers %v at 20 %% loss, full frames %v", r.Trace, s.Name, d, most)
			}
			if s.Points[1].Bits < s.Points[0].Bits && s.Name != "chain4" {
				t.Errorf("%s: %s takes %v bits, with loss %v", r.Trace, s.Name, s.Points[0].Bits, s.Points[1].Bits)
			}
		}
	}
}

// TestSameTerms checks that the bits of full frames and of paper are counted as those of rle are.
func TestSameTerms(t *testing.T) {
	tr := load(t, "../../../testdata/traces/rocketleague_solo_30hz.csv.gz")
	r := mustRun(t, tr, Config{Losses: []float64{0}, Frames: MinFrames, Untimed: true})
	bits := 0
	for n := r.Training; n < MinFrames; n++ {
		bits += (inspect.FullBits(tr.Schema, &tr.Frames[n]) + 7) / 8 * 8
	}
	want := share(bits, r.Measured)
	if got := r.at("full").Points[0].PayloadBits; got < want || got > want+8 {
		t.Errorf("full frames have %v bits, want %v and some padding", got, want)
	}
	paper, rle := r.at(Paper).Points[0], r.at("rle").Points[0]
	if paper.PayloadBits != rle.PayloadBits || paper.Bits-paper.PayloadBits != 64 || rle.Bits-rle.PayloadBits > 24 {
		t.Errorf("paper %+v, rle %+v", paper, rle)
	}
}

// TestDeterministic checks that counts are reproducible.
func TestDeterministic(t *testing.T) {
	if testing.Short() {
		t.Skip("runs twice")
	}
	tr := load(t, "../../../testdata/traces/portal2_coop_60hz.csv.gz")
	cfg := Config{Losses: []float64{0.1}, Frames: MinFrames, Untimed: true}
	if one, again := mustRun(t, tr, cfg), mustRun(t, tr, cfg); !reflect.DeepEqual(one, again) {
		t.Errorf("%+v, then %+v", one, again)
	}
}

// TestWrong counts the frames that a peer decodes to other values.
func TestWrong(t *testing.T) {
	tr := load(t, "../../../testdata/traces/portal2_coop_60hz.csv.gz")
	tr.Frames = tr.Frames[:100]
	cfg := Config{Untimed: true}
	cfg.fill()
	trial := &trial{ctx: context.Background(), cfg: cfg, schema: tr.Schema, training: tr.Frames[:50]}
	trial.measured = &trace.Trace{Name: "t", Schema: tr.Schema, Frames: tr.Frames[50:]}
	if err := trial.prepare(); err != nil {
		t.Fatal(err)
	}
	kind := peer.Kinds()[0]
	p, err := kind.New(tr.Schema, kind.Forms[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	frames := trial.measured.Frames
	r := newReplay(liar{p}, &kind, tr.Schema, frames, trial.courses[0][0])
	point, err := r.run()
	if err != nil || point.Mismatches != len(frames) {
		t.Errorf("%d of %d frames are wrong, %v", point.Mismatches, len(frames), err)
	}
}

// TestDelivered counts the frames of which one of the payloads arrives.
func TestDelivered(t *testing.T) {
	var course bench.Course
	for _, arrived := range []bool{true, false, true, false, false, false, true, false} {
		course = append(course, bench.Passage{Base: -1, Arrived: arrived})
	}
	for span, want := range map[int]float64{1: 3. / 8, 2: 5. / 8, 3: 6. / 8, 4: 7. / 8, 5: 7. / 8} {
		if got := delivered(course, span); got != want {
			t.Errorf("%d frames a payload: %v, want %v", span, got, want)
		}
	}
}

// TestSpan finds as many repetitions as the target takes and the deadline permits.
func TestSpan(t *testing.T) {
	tr := load(t, "../../../testdata/traces/portal2_coop_60hz.csv.gz")
	trial := &trial{ctx: context.Background(), schema: tr.Schema}
	for loss, want := range map[float64]int{0: 1, 0.01: 2, 0.05: 3, 0.5: 4} {
		if got, err := trial.span(loss); got != want || err != nil {
			t.Errorf("%v: %d frames a payload, %v, want %d", loss, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	tr := load(t, "../../../testdata/traces/portal2_coop_60hz.csv.gz")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, tr, Config{Frames: MinFrames, Untimed: true}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tr.Frames = tr.Frames[:MinFrames-1]
	if _, err := Run(context.Background(), tr, Config{}); err == nil || !strings.Contains(err.Error(), "999 frames, want at least 1000") {
		t.Error(err)
	}
	tr.Frames = append(tr.Frames, tr.Frames[0])
	if _, err := Run(context.Background(), tr, Config{Losses: []float64{1}, Untimed: true}); err == nil {
		t.Error("nothing gets through, and nobody minds")
	}
}

func TestSummary(t *testing.T) {
	scheme := func(name string, class peer.Class, bits ...float64) Scheme {
		return Scheme{Name: name, Class: class, EncodeNs: bits[0], DecodeNs: 2 * bits[0], Points: []Point{{Bits: bits[0], Delivered: 1}, {Loss: 0.1, Bits: bits[1], Delivered: bits[0] / 1000}}}
	}
	s := Summarize([]*Result{
		{Schemes: []Scheme{scheme("quick", peer.Engine, 1, 1), scheme("a", peer.General, 100, 200), scheme("b", peer.General, 200, 100), scheme("a repeated", peer.General, 100, 50), scheme(Adaptive, Own, 50, 80), scheme(Redundant, Own, 100, 100)}},
		{Schemes: []Scheme{scheme("quick", peer.Engine, 4, 1), scheme("a", peer.General, 400, 300), scheme("b", peer.General, 800, 800), scheme("a repeated", peer.General, 400, 600), scheme(Adaptive, Own, 50, 60), scheme(Redundant, Own, 100, 300)}},
	})
	near := func(got, want float64) bool { return got > want-1e-9 && got < want+1e-9 }
	if m := s.Means[1]; m.Name != "a" || !near(m.Bits[0], 200) || !near(m.EncodeNs, 200) || !near(m.DecodeNs, 400) || !near(m.Delivered[1], 0.25) {
		t.Errorf("%+v", m)
	}
	if r := s.Ratios[0]; r.Name != Adaptive || !near(r.Loss[0], 0.25) || !near(r.Loss[1], 0.4) || !near(r.Trace[1], 0.125) {
		t.Errorf("%+v", r)
	}
	if r := s.Ratios[1]; r.Name != Redundant || !near(r.Loss[1], 1) {
		t.Errorf("%+v", r)
	}
}

type liar struct{ peer.Peer }

func (l liar) Decode(rows []schema.Frame, base *schema.Frame, payload []byte) error {
	err := l.Peer.Decode(rows, base, payload)
	rows[0].Ints[0]++
	return err
}
