package snapshot

import (
	"flag"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/uplink-rpc/uplink/internal/cubes"
	"github.com/uplink-rpc/uplink/internal/schema"
)

// trainDistances are the distances to the baseline on which each model is trained, after the bare
// ones.
var trainDistances = [...][]int{{1, 2}, {3, 4}, {5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15, 16}}

const (
	maxBareDistance = 20
	// skipFrames is the number of frames at the start of a recording that are not learned.
	skipFrames = 60
	// learnEvery is the distance between frames that are learned.
	learnEvery = 3
)

var recordings = flag.String("train", "", "recordings of cubes, separated by commas, on which to train snapshots.prior")

// TestTrain trains the built-in models on recordings of package internal/cubes, at several
// distances to the baseline, and writes them. To repeat it after a change of what is coded, with a
// recording for each line of testdata/training.txt:
//
//	cd examples/cubes && go run . record --frames 2400 OPTIONS 1.bin
//	go test ./internal/snapshot -run TestTrain -timeout 1h -train 1.bin,...
func TestTrain(t *testing.T) {
	if *recordings == "" {
		t.Skip("no recordings: see -train")
	}
	var worlds [][]*Set
	for _, path := range strings.Split(*recordings, ",") {
		frames, err := cubes.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, trainingSets(t, frames))
	}
	m := train(t, worlds)
	b := m.appendTo(nil, priorSchema())
	if err := os.WriteFile("snapshots.prior", b, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(b))
}

func train(t *testing.T, recordings [][]*Set) *modelSet {
	s := priorSchema()
	tr := newTrainer(s)
	random := rand.New(rand.NewPCG(1, 1))
	for range trainingStages {
		worlds := make([]*History, len(recordings))
		for n, more := 0, true; more; n++ {
			more = false
			for i, sets := range recordings {
				if n >= len(sets) {
					continue
				}
				more = true
				if n == 0 {
					worlds[i] = NewHistory(s, nil)
				}
				worlds[i].Begin().CopyFrom(sets[n])
				if n < skipFrames || n%learnEvery != 0 {
					continue
				}
				if err := learn(tr, worlds[i], random); err != nil {
					t.Fatal(err)
				}
			}
		}
		tr.settle()
	}
	return tr.model
}

func learn(t *trainer, w *History, random *rand.Rand) error {
	if err := t.learn(w, Baseline{Distance: 1 + random.IntN(maxBareDistance)}); err != nil {
		return err
	}
	for _, d := range trainDistances {
		if err := t.learn(w, Baseline{Distance: d[random.IntN(len(d))], Step: 1}); err != nil {
			return err
		}
	}
	return nil
}

// velocityStep is the number of steps of a position per tick of one step of a velocity: 512 steps
// per meter, 60 ticks per second, 32 steps per m/s.
const velocityStep = 512. / 60 / 32

// trainingSets returns the frames of a recording as objects of priorSchema, with velocities that
// follow from the positions.
func trainingSets(t *testing.T, frames []cubes.Frame) []*Set {
	s := priorSchema()
	sets := make([]*Set, len(frames))
	for n := range frames {
		sets[n] = s.NewSet()
		for i := range frames[n] {
			c, before := &frames[n][i], &frames[max(n-1, 0)][i]
			row := []int32{c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], 0, 0, 0, c.Interacting}
			for k := range 3 {
				v := float64(c.Position[k]-before.Position[k]) / velocityStep
				row[7+k] = int32(min(max(v, -1<<13), 1<<13-1))
			}
			if err := sets[n].Add(Object{ID: uint16(i)}, row); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sets
}

// FuzzModels parses arbitrary models. Accepted ones are the same when they are written and parsed
// again.
func FuzzModels(f *testing.F) {
	s, err := NewSchema(Field{Name: "Lit", Class: schema.ClassInteger, N: 1, Hi: 1}) // small models
	if err != nil {
		f.Fatal(err)
	}
	f.Add(defaultModel(s).appendTo(nil, s))
	f.Add(newModel(s).appendTo(nil, s))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseModel(b, s)
		if err != nil {
			return
		}
		again, err := parseModel(m.appendTo(nil, s), s)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("parsed again: %v", err)
		}
	})
}
