package snapbench

import (
	"math/rand/v2"

	"github.com/uplink-rpc/uplink/internal/lab/cubes"
	"github.com/uplink-rpc/uplink/snapshot"
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

// Train trains a model on recordings of cubes, on several distances to the baseline.
func Train(recordings [][]*snapshot.Set) (*snapshot.Model, error) {
	s := snapshot.PriorSchema()
	t := snapshot.NewTrainer(s)
	random := rand.New(rand.NewPCG(1, 1))
	for done := false; !done; done = t.Settle() {
		worlds := make([]*snapshot.World, len(recordings))
		for n, more := 0, true; more; n++ {
			more = false
			for i, sets := range recordings {
				if n >= len(sets) {
					continue
				}
				more = true
				if n == 0 {
					worlds[i] = snapshot.NewWorld(s, nil)
				}
				worlds[i].Begin().CopyFrom(sets[n])
				if n < skipFrames || n%learnEvery != 0 {
					continue
				}
				if err := learn(t, worlds[i], random); err != nil {
					return nil, err
				}
			}
		}
	}
	return t.Model(), nil
}

func learn(t *snapshot.Trainer, w *snapshot.World, random *rand.Rand) error {
	if err := t.Learn(w, snapshot.Baseline{Distance: 1 + random.IntN(maxBareDistance)}); err != nil {
		return err
	}
	for _, d := range trainDistances {
		if err := t.Learn(w, snapshot.Baseline{Distance: d[random.IntN(len(d))], Step: 1}); err != nil {
			return err
		}
	}
	return nil
}

// velocityStep is the number of steps of a position per tick of one step of a velocity: 512 steps
// per meter, 60 ticks per second, 32 steps per m/s.
const velocityStep = 512. / 60 / 32

// TrainingSets returns the frames of a recording as objects of [snapshot.PriorSchema], with
// velocities that follow from the positions.
func TrainingSets(frames []cubes.Frame) ([]*snapshot.Set, error) {
	s := snapshot.PriorSchema()
	sets := make([]*snapshot.Set, len(frames))
	for n := range frames {
		sets[n] = s.NewSet()
		for i := range frames[n] {
			c, before := &frames[n][i], &frames[max(n-1, 0)][i]
			row := []int32{c.Largest, c.Smallest[0], c.Smallest[1], c.Smallest[2], c.Position[0], c.Position[1], c.Position[2], 0, 0, 0, c.Interacting}
			for k := range 3 {
				v := float64(c.Position[k]-before.Position[k]) / velocityStep
				row[7+k] = int32(min(max(v, -1<<13), 1<<13-1))
			}
			if err := sets[n].Add(snapshot.Object{ID: uint16(i)}, row); err != nil {
				return nil, err
			}
		}
	}
	return sets, nil
}
